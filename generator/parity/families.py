"""The families that definitions are composed into: plain data, without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from generator.parity.hybrids import NEMOTRON_H, QWEN3_NEXT
from generator.parity.recipe import FIRST_NORM, Family, Stage

_ADDED = "norms that add the residual"
_SANDWICH = "norms behind attention and MLP"
_HEADS = "query and key norm"
_QKV = "self_attn.q_proj self_attn.k_proj self_attn.v_proj"

_INPUT = Stage("input_norm", "norm", "h", "x", "input_layernorm", FIRST_NORM)
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
    "qwen3-next": QWEN3_NEXT,
    "nemotron-h": NEMOTRON_H,
}
"""The families, by the names that users give."""
