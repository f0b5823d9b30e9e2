"""Families with a mixture of experts that differ from Qwen3's and DeepSeek's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from generator.parity.recipe import Family
from generator.parity.stages import (
    ATTENTION,
    DEEPSEEK_MOE,
    INPUT,
    K_NORM,
    MIXER,
    MIXER_NORMED,
    MLP,
    MOE,
    OUT,
    Q_NORM,
    QKV_FUSED,
    ROPE_NORMED,
)
from generator.parity.tiny import TINY, TINY_MOE

# queries and keys are normalised over all heads together
_ALL_HEADS_NORMED = (
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
        {"": _ALL_HEADS_NORMED},
        {"moe": MOE},
        {**TINY, "intermediate_size": 32, "num_local_experts": 16},
        {"rope_parameters": _half_turned(5e6)},
    ),
}
