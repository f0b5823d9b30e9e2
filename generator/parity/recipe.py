"""How each family of models is composed of definitions: plain data, without torch.

A value is a matrix, one row a token; a stage reads some by name and writes others. What
transformers computes there is the output of its module `at` a path in the layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
    config, and `facts` are figures that transformers needs beside the published ones;
    `others` are those of other models of the family, where they differ. `real` is
    replaced at real geometry beside the number of layers, one of each type.
    """

    model: str
    mixers: Mapping[str, tuple[Stage, ...]]
    feeds: Mapping[str, tuple[Stage, ...]]
    tiny: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    real: Mapping[str, Any] = field(default_factory=dict)


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

# a mixture of experts in place of the MLP
_ROUTER = Stage("router", "router", "y", "router", "mlp.gate", "router")
_ROUTING = Stage(
    "routing", "routing", "router y", "choice", "mlp.gate", "routing", "mlp.gate+"
)
_EXPERTS = Stage("experts", "experts", "y choice", "d", "mlp.experts", "experts")
_MOE = (_SUM, _MLP_NORM, _ROUTER, _ROUTING, _EXPERTS, _OUTPUT)
_OSS_MOE = (
    _SUM,
    _MLP_NORM,
    Stage("router", "router", "y", "router", "mlp.router", "router"),
    Stage(
        "routing",
        "routing",
        "router y",
        "choice",
        "mlp.router",
        "routing",
        "mlp.router+",
    ),
    # no definition: these experts have biases and a clipped activation
    replace(_EXPERTS, needs=""),
    _OUTPUT,
)
_SHARED = "mlp.shared_experts"
_SHARED_UP = f"{_SHARED}.gate_proj {_SHARED}.up_proj"
_SHARED_DOWN = f"{_SHARED}.down_proj"
_DEEPSEEK_MOE = (
    _SUM,
    _MLP_NORM,
    _ROUTER,
    _ROUTING,
    Stage("experts", "experts", "y choice", "e", "mlp.experts", "experts"),
    Stage(
        "shared_gate_up",
        "linear",
        "y",
        "gate up",
        _SHARED_UP,
        "shared expert, gate and up",
    ),
    Stage(
        "shared_act",
        "activation",
        "gate up",
        "g",
        _SHARED,
        "shared expert, activation",
        f"{_SHARED_DOWN}<",
    ),
    Stage("shared_down", "linear", "g", "s", _SHARED_DOWN, "shared expert, down"),
    Stage("mixture", "add", "e s", "d", truth="mlp"),
    _OUTPUT,
)

# DeepSeek: keys and values are made of a latent
_Q_A, _KV_A = "self_attn.q_a_proj", "self_attn.kv_a_proj_with_mqa"
_LATENT_MIXER = (
    _INPUT,
    Stage("q_a", "linear", "x", "q_a", _Q_A, "query compression"),
    Stage(
        "q_a_norm",
        "norm",
        "q_a",
        "q_an",
        "self_attn.q_a_layernorm",
        "norm of the query",
    ),
    Stage("q_b", "linear", "q_an", "q", "self_attn.q_b_proj", "query projection"),
    Stage("kv_a", "linear", "x", "kv_a", _KV_A, "key and value compression"),
    Stage(
        "kv_a_norm",
        "latent_norm",
        "kv_a",
        "c",
        "self_attn.kv_a_layernorm",
        "norm of the latent",
    ),
    Stage("rope", "latent_rope", "q kv_a", "q_r k_r", "rope", "RoPE"),
    Stage(
        "kv_b", "linear", "c", "kv", "self_attn.kv_b_proj", "key and value projection"
    ),
    Stage(
        "attention",
        "latent_attention",
        "q q_r kv k_r c",
        "a",
        "attention",
        "attention",
    ),
    _OUT,
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

# beside `tiny`: named geometries of small models, of which each changes some figures
SIZES: Mapping[str, Mapping[str, Any]] = {
    "tiny": {},
    "gqa": {"num_attention_heads": 16, "num_key_value_heads": 1},
    "wide": {"hidden_size": 256, "intermediate_size": 768},
    "medium": {"hidden_size": 192, "num_hidden_layers": 6, "head_dim": 32},
    "deep": {"num_hidden_layers": 24},
}
"""Figures that replace those of a tiny model."""
SETS: Mapping[str, tuple[str, ...]] = {
    "quick": ("tiny",),
    "full": ("tiny", "gqa", "wide", "medium"),
    "stress": tuple(SIZES),
}
"""The geometries of a set."""
HEADS = (
    "head_dim",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "mamba_head_dim",
    "ssm_state_size",
)
"""Lengths of heads and states: `wide` has the model's own, which kernels are made for."""
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
        {"": _MIXER},
        {"dense": _MLP},
        _TINY,
        {"rope_parameters": _LLAMA3_ROPE},
        {
            name: {"rope_parameters": {**_LLAMA3_ROPE, "factor": 32.0}}
            for name in ("llama-3.2-1b", "llama-3.2-3b")
        },
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
        {"": _MIXER_NORMED},
        {"moe": _MOE},
        {**_TINY_MOE, "num_experts": 16},
    ),
    "gpt-oss": Family(
        "gpt-oss-20b",
        {"sliding_attention": _MIXER, "full_attention": _MIXER},
        {"moe": _OSS_MOE},
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
        {"": _LATENT_MIXER},
        {"dense": _MLP, "moe": _DEEPSEEK_MOE},
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
