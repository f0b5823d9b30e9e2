"""Families with one MLP a layer that differ from Llama in one thing or two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from generator.parity.recipe import FINAL, Family, Stage
from generator.parity.stages import (
    ACT,
    ATTENTION,
    DOWN,
    GATE_UP,
    GEMMA_MIXER,
    GEMMA_MLP,
    INPUT,
    MIXER,
    MLP,
    MLP_NORM,
    OUT,
    OUTPUT,
    QKV_FUSED,
    ROPE,
    SUM,
)
from generator.parity.tiny import TINY

ALTERNATING = ["sliding_attention", "full_attention", "sliding_attention"]

_PACKED_MIXER = (
    INPUT,
    replace(QKV_FUSED, at="self_attn.qkv_proj"),
    ROPE,
    ATTENTION,
    OUT,
)
_PACKED_MLP = (
    SUM,
    MLP_NORM,
    replace(GATE_UP, at="mlp.gate_up_proj"),
    ACT,
    DOWN,
    OUTPUT,
)

_HEAD_NORMS = ("q_norm", "k_norm")
_GEMMA2_MIXER = tuple(
    replace(stage, reads="q k") if stage.name == "rope" else stage
    for stage in GEMMA_MIXER
    if stage.name not in _HEAD_NORMS
)
_CAPPED = (
    FINAL[0],
    replace(FINAL[1], writes="z"),
    Stage("cap", "softcap", "z", "logits", truth="logits"),
)

DENSE: Mapping[str, Family] = {
    "mistral": Family(
        "mistral-7b-v0.1", {"": MIXER}, {"dense": MLP}, {**TINY, "sliding_window": 24}
    ),
    # biases of query, key and value
    "qwen2": Family("qwen2.5-7b", {"": MIXER}, {"dense": MLP}, TINY),
    "phi3": Family(
        "phi-4-14b",
        {"": _PACKED_MIXER},
        {"dense": _PACKED_MLP},
        TINY,
        {
            "pad_token_id": None,
            "rope_parameters": {"rope_type": "default", "rope_theta": 250000.0},
        },
    ),
    "gemma2": Family(
        "gemma-2-9b",
        dict.fromkeys(ALTERNATING[:2], _GEMMA2_MIXER),
        {"dense": GEMMA_MLP},
        {
            **TINY,
            "query_pre_attn_scalar": 21,
            "sliding_window": 24,
            "layer_types": ALTERNATING,
        },
        final=_CAPPED,
    ),
}
