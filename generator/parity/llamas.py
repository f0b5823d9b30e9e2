"""Families with models here that differ from Llama in norms, RoPE or numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from generator.parity.hybrids import SHARED_MOE
from generator.parity.mixtures import ALL_HEADS_NORMED
from generator.parity.recipe import EMBED, FINAL, Family, Stage
from generator.parity.stages import (
    ACT,
    AFTER,
    AFTER_MLP,
    ATTENTION,
    DEEPSEEK_MOE,
    DOWN,
    GATE_UP,
    MIXER,
    MIXER_NORMED,
    MLP,
    OUT,
    ROPE,
)
from generator.parity.tiny import TINY, TINY_MOE

# OLMo and EXAONE 4: norms behind attention and MLP alone
_BEHIND = "norms behind attention and MLP, and the last"


def _behind(mixer: Iterable[Stage]) -> tuple[Stage, ...]:
    """Return a mixer without its first norm, with one behind it."""
    _, qkv, *others = mixer
    last = Stage("o_norm", "norm", "o", "on", AFTER, _BEHIND)
    return (replace(qkv, reads="h"), *others, last)


_MLP_BEHIND = (
    Stage("residual", "add", "h on", "y", truth="mlp<"),
    GATE_UP,
    ACT,
    DOWN,
    Stage("d_norm", "norm", "d", "dn", AFTER_MLP, _BEHIND),
    Stage("output", "add", "y dn", "out", truth="."),
)
_FINAL_BEHIND = (replace(FINAL[0], needs=_BEHIND), FINAL[1])
_UNTURNED = tuple(
    replace(stage, reads="q_n k_n v") if stage.name == "attention" else stage
    for stage in MIXER_NORMED
    if stage.name != "rope"
)
_SLIDING, _FULL = "sliding_attention", "full_attention"
_WINDOWED = {
    **TINY,
    "sliding_window": 24,
    "layer_types": [_SLIDING, _FULL, _SLIDING],
}
# an embedding of padding gets no gradient
_UNPADDED = {"pad_token_id": None}

# Granite: embeddings, what layers add, and logits times numbers
_TIMES = "the residual and a multiple of what a layer adds"
_MULTIPLE = (
    Stage("residual", "add_multiple", "h o", "r", "", _TIMES, f"{AFTER}<"),
    Stage("mlp_norm", "norm", "r", "y", AFTER, "norms behind the residual"),
    GATE_UP,
    ACT,
    DOWN,
    Stage("output", "add_multiple", "r d", "out", "", _TIMES, "."),
)

# Ministral 3: queries grow with their position
_GROWN = (
    *MIXER[:2],
    replace(ROPE, writes="q_t k_r"),
    Stage(
        "q_growth",
        "query_growth",
        "q_t",
        "q_r",
        "",
        "queries times a function of their position",
        "attention<",
    ),
    ATTENTION,
    OUT,
)

LLAMAS: Mapping[str, Family] = {
    "granite": Family(
        "granite-4.1-8b",
        {"": MIXER},
        {"dense": _MULTIPLE},
        TINY,
        embed=replace(EMBED, writes="t"),
        entry=(
            Stage(
                "embed_multiple",
                "embedding_multiple",
                "t",
                "h",
                "",
                "embeddings times a number",
                "model.layers.0<",
            ),
        ),
        final=(
            FINAL[0],
            replace(FINAL[1], writes="z"),
            Stage(
                "fraction",
                "logits_fraction",
                "z",
                "logits",
                "",
                "logits over a number",
                "logits",
            ),
        ),
    ),
    "olmo3": Family(
        "olmo-3-7b",
        dict.fromkeys((_SLIDING, _FULL), _behind(ALL_HEADS_NORMED)),
        {"dense": _MLP_BEHIND},
        {**_WINDOWED, "head_dim": 8},
        _UNPADDED,
        final=_FINAL_BEHIND,
    ),
    # RoPE in layers with a window alone
    "exaone4": Family(
        "exaone-4.0-32b",
        {_SLIDING: _behind(MIXER_NORMED), _FULL: _behind(_UNTURNED)},
        {"dense": _MLP_BEHIND},
        _WINDOWED,
        final=_FINAL_BEHIND,
    ),
    # RoPE turns a dimension with its neighbour
    "ernie4.5": Family("ernie-4.5-0.3b", {"": MIXER}, {"dense": MLP}, TINY),
    "ministral3": Family(
        "ministral-3-8b",
        {"": _GROWN},
        {"dense": MLP},
        {
            **TINY,
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 1e6,
                "factor": 16.0,
                "original_max_position_embeddings": 16,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "mscale": 1.0,
                "mscale_all_dim": 1.0,
                "llama_4_scaling_beta": 0.1,
            },
        },
        _UNPADDED,
    ),
    "qwen2-moe": Family(
        "qwen1.5-moe-a2.7b",
        {"": MIXER},
        {"moe": SHARED_MOE},
        {
            **TINY_MOE,
            "num_experts": 16,
            "shared_expert_intermediate_size": 48,
            "layer_types": [_FULL],
        },
    ),
    "hunyuan3": Family(
        "hy3-preview",
        {"": MIXER_NORMED},
        {"dense": MLP, "moe": DEEPSEEK_MOE},
        {
            **TINY_MOE,
            "num_experts": 16,
            "mlp_layer_types": ["dense", "sparse", "sparse"],
        },
        real={"num_hidden_layers": 2, "mlp_layer_types": ["dense", "sparse"]},
    ),
}
