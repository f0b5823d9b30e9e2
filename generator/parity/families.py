"""The families that definitions are composed into: plain data, without torch."""

from __future__ import annotations

from collections.abc import Mapping

from generator.parity.hybrids import NEMOTRON_H, QWEN3_NEXT
from generator.parity.recipe import Family
from generator.parity.stages import (
    DEEPSEEK_MOE,
    GEMMA_MIXER,
    GEMMA_MLP,
    LATENT_MIXER,
    MIXER,
    MIXER_NORMED,
    MLP,
    MOE,
    OSS_MOE,
)

_TINY = {
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_hidden_layers": 3,
    "vocab_size": 320,
    "max_position_embeddings": 256,
}

_TINY_MOE = {**_TINY, "moe_intermediate_size": 32}
_LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
_YARN = {
    "rope_type": "yarn",
    "rope_theta": 1e4,
    "factor": 40.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "beta_fast": 32,
    "beta_slow": 1,
    "original_max_position_embeddings": 4096,
}

FAMILIES: Mapping[str, Family] = {
    "llama": Family(
        "llama-3.1-8b",
        {"": MIXER},
        {"dense": MLP},
        _TINY,
        {"rope_parameters": _LLAMA3_ROPE},
        {
            name: {"rope_parameters": {**_LLAMA3_ROPE, "factor": 32.0}}
            for name in ("llama-3.2-1b", "llama-3.2-3b")
        },
    ),
    "qwen3": Family("qwen3-8b", {"": MIXER_NORMED}, {"dense": MLP}, _TINY),
    "gemma3": Family(
        "gemma-3-27b",
        {"sliding_attention": GEMMA_MIXER, "full_attention": GEMMA_MIXER},
        {"dense": GEMMA_MLP},
        {
            **_TINY,
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
        {**_TINY_MOE, "num_experts": 16},
    ),
    "gpt-oss": Family(
        "gpt-oss-20b",
        {"sliding_attention": MIXER, "full_attention": MIXER},
        {"moe": OSS_MOE},
        {
            **_TINY,
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
        {
            **_TINY_MOE,
            "num_key_value_heads": 8,
            "head_dim": 8,
            "q_lora_rank": 48,
            "kv_lora_rank": 32,
            "qk_nope_head_dim": 16,
            "qk_rope_head_dim": 8,
            "v_head_dim": 16,
            "n_routed_experts": 32,
            "first_k_dense_replace": 1,
        },
        {
            "routed_scaling_factor": 2.5,
            "norm_topk_prob": True,
            "rope_parameters": _YARN,
        },
        {
            "kimi-k2": {
                "routed_scaling_factor": 2.827,
                "rope_parameters": {**_YARN, "rope_theta": 5e4, "factor": 32.0},
            }
        },
        {"num_hidden_layers": 2, "first_k_dense_replace": 1},
    ),
    "qwen3-next": QWEN3_NEXT,
    "nemotron-h": NEMOTRON_H,
}
"""The families, by the names that users give."""
