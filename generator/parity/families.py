"""The families that definitions are composed into: plain data, without torch."""

from __future__ import annotations

from collections.abc import Mapping

from generator.parity.dense import DENSE
from generator.parity.encoders import T5, WHISPER
from generator.parity.hybrids import (
    KIMI_LINEAR,
    NEMOTRON_3,
    NEMOTRON_H,
    QWEN3_5,
    QWEN3_NEXT,
)
from generator.parity.latents import LATENTS
from generator.parity.llamas import LLAMAS
from generator.parity.mixtures import MIXTURES
from generator.parity.recipe import Family
from generator.parity.stages import (
    DEEPSEEK_MOE,
    GEMMA_MIXER,
    GEMMA_MLP,
    INDEXED_MIXER,
    LATENT_MIXER,
    MIXER,
    MIXER_NORMED,
    MLP,
    MOE,
    OSS_MOE,
    narrow,
)
from generator.parity.tiled import LLAMA_VISION
from generator.parity.tiny import LLAMA3_ROPE, TINY, TINY_LATENT, TINY_MOE, YARN
from generator.parity.unmapped import UNMAPPED
from generator.parity.vision import QWEN3_VL, QWEN3_VL_MOE

FAMILIES: Mapping[str, Family] = {
    "llama": Family(
        "llama-3.1-8b",
        {"": MIXER},
        {"dense": MLP},
        TINY,
        {"rope_parameters": LLAMA3_ROPE},
        {
            name: {"rope_parameters": {**LLAMA3_ROPE, "factor": 32.0}}
            for name in ("llama-3.2-1b", "llama-3.2-3b")
        },
    ),
    "qwen3": Family("qwen3-8b", {"": MIXER_NORMED}, {"dense": MLP}, TINY),
    "gemma3": Family(
        "gemma-3-27b",
        {"sliding_attention": GEMMA_MIXER, "full_attention": GEMMA_MIXER},
        {"dense": GEMMA_MLP},
        {
            **TINY,
            "query_pre_attn_scalar": 21,
            "sliding_window": 24,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
        {
            "rope_parameters": {
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
                "full_attention": {
                    "rope_type": "linear",
                    "factor": 8.0,
                    "rope_theta": 1e6,
                },
            }
        },
    ),
    "qwen3-moe": Family(
        "qwen3-30b-a3b",
        {"": MIXER_NORMED},
        {"moe": MOE},
        {**TINY_MOE, "num_experts": 16},
    ),
    "gpt-oss": Family(
        "gpt-oss-20b",
        {"sliding_attention": MIXER, "full_attention": MIXER},
        {"moe": OSS_MOE},
        {
            **TINY,
            "intermediate_size": 48,
            "num_local_experts": 8,
            "sliding_window": 24,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
    ),
    "deepseek-v3": Family(
        "deepseek-v3",
        {"": LATENT_MIXER},
        {"dense": MLP, "moe": DEEPSEEK_MOE},
        TINY_LATENT,
        {
            "routed_scaling_factor": 2.5,
            "norm_topk_prob": True,
            "rope_parameters": YARN,
        },
        {
            "kimi-k2": {
                "routed_scaling_factor": 2.827,
                "rope_parameters": {**YARN, "rope_theta": 5e4, "factor": 32.0},
            }
        },
        {"num_hidden_layers": 2, "first_k_dense_replace": 1},
    ),
    **DENSE,
    **MIXTURES,
    **LLAMAS,
    **UNMAPPED,
    **LATENTS,
    "qwen3-vl": QWEN3_VL,
    "qwen3-vl-moe": QWEN3_VL_MOE,
    "llama-vision": LLAMA_VISION,
    "whisper": WHISPER,
    "t5": T5,
    "deepseek-v3.2": Family(
        "deepseek-v3.2",
        {"": INDEXED_MIXER},
        {"dense": MLP, "moe": DEEPSEEK_MOE},
        TINY_LATENT,
        {
            "routed_scaling_factor": 2.5,
            "norm_topk_prob": True,
            "rope_interleave": True,
            "rope_parameters": YARN,
        },
        real={"num_hidden_layers": 2, "first_k_dense_replace": 1},
    ),
    "glm4-moe-lite": Family(
        "glm-4.7-flash",
        {"": narrow(LATENT_MIXER)},
        {"dense": MLP, "moe": DEEPSEEK_MOE},
        TINY_LATENT,
        real={"num_hidden_layers": 2, "first_k_dense_replace": 1},
    ),
    "glm5": Family(
        "glm-5",
        {"": narrow(INDEXED_MIXER)},
        {"dense": MLP, "moe": DEEPSEEK_MOE},
        {
            **TINY_LATENT,
            "layer_types": ["deepseek_sparse_attention"],
            "indexer_types": ["full"],
        },
        real={
            "num_hidden_layers": 2,
            "first_k_dense_replace": 1,
            "layer_types": ["deepseek_sparse_attention"] * 2,
            "indexer_types": ["full"] * 2,
        },
    ),
    "qwen3-next": QWEN3_NEXT,
    **QWEN3_5,
    "kimi-linear": KIMI_LINEAR,
    "nemotron3": NEMOTRON_3,
    "nemotron-h": NEMOTRON_H,
}
"""The families, by the names that users give."""
