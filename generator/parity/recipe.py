"""How each family of models is composed of definitions: plain data, without torch.

A value is a matrix, one row a token; a stage reads some by name and writes others. What
transformers computes there is the output of its module `at` a path in the layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PAGE_SIZES = (1, 64)
"""Tokens of a page, in decoding."""


@dataclass(frozen=True)
class Stage:
    """Say what one step of a layer reads and writes, and which definition computes it.

    `kind` is the function of `kinds.py` that reshapes values to a definition's inputs.
    `at` names transformers' modules with the weights, or one of its functions (`rope`,
    `attention`); `truth` is where the values written are seen there, `at` if not given:
    `PATH` for what a module returns, `PATH<` for what it is given, `.` for the layer.
    `needs` is the module of `generator.models.modules` that names the definition, empty
    where there is none by design.
    """

    name: str
    kind: str
    reads: str
    writes: str
    at: str = ""
    needs: str = ""
    truth: str = ""


@dataclass(frozen=True)
class Family:
    """Hold a family: the model that stands for it, its stages, and its tiny geometry.

    `mixers` are the stages of attention or what stands in its place, by the type of the
    layer; `feeds` those of the MLP, by `dense` and `moe`. `tiny` replaces figures of the
    config, and `facts` are figures that transformers needs beside the published ones.
    """

    model: str
    mixers: Mapping[str, tuple[Stage, ...]]
    feeds: Mapping[str, tuple[Stage, ...]]
    tiny: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)


_NORM = "norm before the first layer"
_ADDED = "norms that add the residual"
_SANDWICH = "norms behind attention and MLP"
_HEADS = "query and key norm"
_QKV = "self_attn.q_proj self_attn.k_proj self_attn.v_proj"

EMBED = Stage("embed", "embedding", "tokens", "h", "model.embed_tokens", "embedding")
FINAL = (
    Stage("final_norm", "norm", "h", "x", "model.norm", _NORM),
    Stage("lm_head", "linear", "x", "logits", "lm_head", "lm_head"),
)

_INPUT = Stage("input_norm", "norm", "h", "x", "input_layernorm", _NORM)
_PROJECTION = "query, key and value projection"
_QKV_FUSED = Stage("qkv", "linear", "x", "q k v", _QKV, _PROJECTION)
_Q = Stage("q", "linear", "x", "q", "self_attn.q_proj", "query projection")
_KV = "key or value projection"
_K = Stage("k", "linear", "x", "k", "self_attn.k_proj", _KV)
_V = Stage("v", "linear", "x", "v", "self_attn.v_proj", _KV)
_Q_NORM = Stage("q_norm", "norm", "q", "q_n", "self_attn.q_norm", _HEADS)
_K_NORM = Stage("k_norm", "norm", "k", "k_n", "self_attn.k_norm", _HEADS)
_ROPE = Stage("rope", "rope", "q k", "q_r k_r", "rope", "RoPE")
_ROPE_NORMED = Stage("rope", "rope", "q_n k_n", "q_r k_r", "rope", "RoPE")
_ATTENTION = Stage("attention", "attention", "q_r k_r v", "a", "attention", "attention")
_OUT = Stage("o", "linear", "a", "o", "self_attn.o_proj", "output projection")

_AFTER = "post_attention_layernorm"
_SUM = Stage("residual", "add", "h o", "r", truth=f"{_AFTER}<")
_MLP_NORM = Stage("mlp_norm", "add_norm", "o h", "y", _AFTER, _ADDED)
_UP = "mlp.gate_proj mlp.up_proj"
_GATE_UP = Stage("gate_up", "linear", "y", "gate up", _UP, "MLP, gate and up")
_ACT = Stage(
    "act", "activation", "gate up", "g", "mlp", "MLP, activation", "mlp.down_proj<"
)
_DOWN = Stage("down", "linear", "g", "d", "mlp.down_proj", "MLP, down")
_OUTPUT = Stage("output", "add", "r d", "out", truth=".")

_MIXER = (_INPUT, _QKV_FUSED, _ROPE, _ATTENTION, _OUT)
_MIXER_NORMED = (
    _INPUT,
    _QKV_FUSED,
    _Q_NORM,
    _K_NORM,
    _ROPE_NORMED,
    _ATTENTION,
    _OUT,
)
_MLP = (_SUM, _MLP_NORM, _GATE_UP, _ACT, _DOWN, _OUTPUT)

# Gemma: norms behind attention and MLP as well, and no product is fused
_GEMMA_MIXER = (
    _INPUT,
    _Q,
    _K,
    _V,
    _Q_NORM,
    _K_NORM,
    _ROPE_NORMED,
    _ATTENTION,
    _OUT,
    Stage("o_norm", "norm", "o", "on", _AFTER, _SANDWICH),
)
_BEFORE_MLP, _AFTER_MLP = "pre_feedforward_layernorm", "post_feedforward_layernorm"
_GEMMA_UP = "MLP, up"
_GEMMA_MLP = (
    Stage("residual", "add", "h on", "r", truth=f"{_BEFORE_MLP}<"),
    Stage("mlp_norm", "add_norm", "on h", "y", _BEFORE_MLP, _ADDED),
    Stage("gate", "linear", "y", "gate", "mlp.gate_proj", _GEMMA_UP),
    Stage("up", "linear", "y", "up", "mlp.up_proj", _GEMMA_UP),
    _ACT,
    _DOWN,
    Stage("d_norm", "norm", "d", "dn", _AFTER_MLP, _SANDWICH),
    Stage("output", "add", "r dn", "out", truth="."),
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
_LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}

FAMILIES: Mapping[str, Family] = {
    "llama": Family(
        "llama-3.1-8b",
        {"": _MIXER},
        {"dense": _MLP},
        _TINY,
        {"rope_parameters": _LLAMA3_ROPE},
    ),
    "qwen3": Family("qwen3-8b", {"": _MIXER_NORMED}, {"dense": _MLP}, _TINY),
    "gemma3": Family(
        "gemma-3-27b",
        {"sliding_attention": _GEMMA_MIXER, "full_attention": _GEMMA_MIXER},
        {"dense": _GEMMA_MLP},
        {
            **_TINY,
            "query_pre_attn_scalar": 21,
            "sliding_window": 24,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
    ),
}
"""The families, by the names that users give."""


def stages(family: Family) -> list[tuple[str, Stage]]:
    """Return every stage with the type of its layer, empty where it is in all of them."""
    found = [("", EMBED)]
    found += [(kind, stage) for kind, mixer in family.mixers.items() for stage in mixer]
    found += [("", stage) for feed in family.feeds.values() for stage in feed]
    return found + [("", stage) for stage in FINAL]


def from_plain(value: Mapping[str, Any]) -> Family:
    """Return the family that `dataclasses.asdict` made a value of."""
    made = {
        part: {
            kind: tuple(Stage(**one) for one in of) for kind, of in value[part].items()
        }
        for part in ("mixers", "feeds")
    }
    return Family(**{**value, **made})
