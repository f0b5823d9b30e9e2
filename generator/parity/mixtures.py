"""Families with a mixture of experts that differ from Qwen3's and DeepSeek's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from generator.parity.recipe import Family, Stage
from generator.parity.stages import (
    ATTENTION,
    DEEPSEEK_MOE,
    INPUT,
    K_NORM,
    MIXER,
    MIXER_NORMED,
    MLP,
    MLP_NORM,
    MOE,
    OUT,
    OUTPUT,
    Q_NORM,
    QKV_FUSED,
    ROPE_NORMED,
    ROUTER,
    ROUTING,
    SUM,
)
from generator.parity.tiny import TINY, TINY_MOE

# queries and keys are normalised over all heads together
ALL_HEADS_NORMED = (
    INPUT,
    QKV_FUSED,
    replace(Q_NORM, needs="query norm"),
    replace(K_NORM, needs="key norm"),
    ROPE_NORMED,
    ATTENTION,
    OUT,
)


def _half_turned(theta: float) -> dict[str, object]:
    """Return RoPE that turns half of a head."""
    return {
        "rope_type": "default",
        "rope_theta": theta,
        "partial_rotary_factor": 0.5,
    }


# Llama 4: three layers of four attend within chunks; the fourth to all, without RoPE
_FEED = "feed_forward"
_SHARED = f"{_FEED}.shared_expert"
_TURNED = Stage("rope", "rope", "q k", "q_t k_t", "rope", "RoPE")
_UNIT = Stage(
    "qk_norm", "unit_norm", "q_t k_t", "q_r k_r", "self_attn.qk_norm", "", "attention<"
)
_CHUNKED_MIXER = (INPUT, QKV_FUSED, _TURNED, _UNIT, ATTENTION, OUT)
_UNTURNED_MIXER = (
    INPUT,
    QKV_FUSED,
    Stage("temperature", "temperature", "q", "q_r", truth="attention<"),
    replace(ATTENTION, reads="q_r k v"),
    OUT,
)
_SCALED_MOE = (
    SUM,
    MLP_NORM,
    replace(ROUTER, at=f"{_FEED}.router", truth=f"{_FEED}.router:1"),
    replace(ROUTING, at=f"{_FEED}.router", truth=f"{_FEED}.router+"),
    Stage(
        "experts",
        "scaled_experts",
        "y choice",
        "e",
        f"{_FEED}.experts",
        "experts",
        f"{_FEED}.experts*",
    ),
    Stage(
        "shared_gate_up",
        "linear",
        "y",
        "gate up",
        f"{_SHARED}.gate_proj {_SHARED}.up_proj",
        "shared expert, gate and up",
    ),
    Stage(
        "shared_act",
        "activation",
        "gate up",
        "g",
        _SHARED,
        "shared expert, activation",
        f"{_SHARED}.down_proj<",
    ),
    Stage(
        "shared_down", "linear", "g", "s", f"{_SHARED}.down_proj", "shared expert, down"
    ),
    Stage("mixture", "add", "s e", "d", truth=_FEED),
    OUTPUT,
)
_KINDS = ["chunked_attention", "full_attention"]

MIXTURES: Mapping[str, Family] = {
    "mixtral": Family(
        "mixtral-8x22b",
        {"": MIXER},
        {"moe": MOE},
        {**TINY, "intermediate_size": 48},
    ),
    "glm4-moe": Family(
        "glm-4.6",
        {"": MIXER_NORMED},
        {"dense": MLP, "moe": DEEPSEEK_MOE},
        {**TINY_MOE, "n_routed_experts": 16, "first_k_dense_replace": 1},
        {
            "use_qk_norm": True,
            "attention_bias": True,
            "norm_topk_prob": True,
            "rope_parameters": _half_turned(1e6),
        },
        real={"num_hidden_layers": 2, "first_k_dense_replace": 1},
    ),
    "minimax-m2": Family(
        "minimax-m2",
        {"": ALL_HEADS_NORMED},
        {"moe": MOE},
        {**TINY, "intermediate_size": 32, "num_local_experts": 16},
        {"rope_parameters": _half_turned(5e6)},
    ),
    "llama4": Family(
        "llama-4-scout",
        {_KINDS[0]: _CHUNKED_MIXER, _KINDS[1]: _UNTURNED_MIXER},
        {"moe": _SCALED_MOE},
        {
            **TINY,
            "intermediate_size": 48,
            "intermediate_size_mlp": 96,
            "num_local_experts": 8,
            "attention_chunk_size": 64,
            "floor_scale": 16,
            "num_hidden_layers": 3,
            "layer_types": [*_KINDS, _KINDS[0]],
            "no_rope_layers": [1, 0, 1],
        },
        {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}},
        real={"no_rope_layers": [1, 0]},
    ),
}
