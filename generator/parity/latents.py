"""Families with latent attention that differ from DeepSeek-V3's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from generator.parity.recipe import Family, Stage
from generator.parity.stages import (
    DEEPSEEK_MOE,
    INPUT,
    KV_A,
    KV_B,
    LATENT_ATTENTION,
    LATENT_MIXER,
    MLP,
    NARROW_LATENT_NORM,
    OUT,
    narrow,
)
from generator.parity.tiny import TINY_LATENT, YARN

# queries that are not compressed
WHOLE_QUERY = (
    INPUT,
    Stage("q", "linear", "x", "q", "self_attn.q_proj", "query projection"),
    Stage("compressed", "linear", "x", "kv_a", KV_A, "key and value compression"),
    NARROW_LATENT_NORM,
)
_ROPE = next(stage for stage in LATENT_MIXER if stage.name == "rope")
_GROWTH = Stage(
    "q_growth",
    "latent_growth",
    "q q_r",
    "q_g",
    "",
    "queries times a function of their position",
    "attention<",
)
_GROWN = tuple(
    part
    for stage in narrow(LATENT_MIXER)
    for part in (
        (_GROWTH, replace(LATENT_ATTENTION, reads="q_g q_g kv k_r c"))
        if stage.name == "attention"
        else (stage,)
    )
)

LATENTS: Mapping[str, Family] = {
    "deepseek-v2": Family(
        "deepseek-v2-lite",
        {"": (*WHOLE_QUERY, _ROPE, KV_B, LATENT_ATTENTION, OUT)},
        {"dense": MLP, "moe": DEEPSEEK_MOE},
        {**TINY_LATENT, "q_lora_rank": None},
        {"rope_parameters": {**YARN, "mscale": 0.707, "mscale_all_dim": 0.707}},
        real={"num_hidden_layers": 2, "first_k_dense_replace": 1},
    ),
    "mistral4": Family(
        "mistral-small-4-119b",
        {"": _GROWN},
        {"moe": DEEPSEEK_MOE},
        {
            **TINY_LATENT,
            "first_k_dense_replace": 0,
            "rope_parameters": {
                **YARN,
                "factor": 128.0,
                "original_max_position_embeddings": 16,
                "llama_4_scaling_beta": 0.1,
                # of `head_dim`, which is that of RoPE here
                "partial_rotary_factor": 1.0,
            },
        },
        {"pad_token_id": None},
        # where transformers lists it
        auto="AutoModelForImageTextToText",
    ),
}
