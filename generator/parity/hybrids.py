"""Families whose layers keep a state, beside those with attention: plain data."""

from __future__ import annotations

from generator.parity.recipe import EMBED, FINAL, FIRST_NORM, Family, Stage

# Qwen3-Next: a gated delta net in three layers of four, gated attention in the fourth
_NET, _ATTENTION = "linear_attn", "self_attn"
_INPUT = Stage("input_norm", "norm", "h", "x", "input_layernorm", FIRST_NORM)
_DELTA_MIXER = (
    _INPUT,
    Stage("in", "linear", "x", "mixed", f"{_NET}.in_proj_qkvz", "delta net, input"),
    Stage("gates", "linear", "x", "ba", f"{_NET}.in_proj_ba", "delta net, gates"),
    Stage(
        "conv",
        "delta_convolution",
        "mixed",
        "c",
        _NET,
        "delta net, convolution",
        "convolution",
    ),
    Stage("delta", "delta_rule", "c ba", "m", _NET, "delta net", "recurrence"),
    Stage(
        "gated_norm",
        "gated_norm",
        "m mixed",
        "n",
        f"{_NET}.norm",
        "delta net, gated norm",
    ),
    Stage("o", "linear", "n", "o", f"{_NET}.out_proj", "delta net, output"),
)
_QKV = f"{_ATTENTION}.q_proj {_ATTENTION}.k_proj {_ATTENTION}.v_proj"
_HEADS = "query and key norm"
_GATED_MIXER = (
    _INPUT,
    Stage("qkv", "linear", "x", "qg k v", _QKV, "query, key and value projection"),
    Stage("q_norm", "query_norm", "qg", "q_n", f"{_ATTENTION}.q_norm", _HEADS),
    Stage("k_norm", "norm", "k", "k_n", f"{_ATTENTION}.k_norm", _HEADS),
    Stage("rope", "rope", "q_n k_n", "q_r k_r", "rope", "RoPE"),
    Stage("attention", "attention", "q_r k_r v", "a", "attention", "attention"),
    Stage("gate", "output_gate", "a qg", "ag", truth=f"{_ATTENTION}.o_proj<"),
    Stage("o", "linear", "ag", "o", f"{_ATTENTION}.o_proj", "output projection"),
)
_AFTER = "post_attention_layernorm"
_SHARED = "mlp.shared_expert"
_SHARED_UP = f"{_SHARED}.gate_proj {_SHARED}.up_proj"
_WORDS = "shared expert"
_SHARED_MOE = (
    Stage("residual", "add", "h o", "r", truth=f"{_AFTER}<"),
    Stage("mlp_norm", "add_norm", "o h", "y", _AFTER, "norms that add the residual"),
    Stage("router", "router", "y", "router", "mlp.gate", "router"),
    Stage(
        "routing", "routing", "router y", "choice", "mlp.gate", "routing", "mlp.gate+"
    ),
    Stage("experts", "experts", "y choice", "e", "mlp.experts", "experts"),
    Stage(
        "shared_gate_up", "linear", "y", "gate up", _SHARED_UP, f"{_WORDS}, gate and up"
    ),
    Stage(
        "shared_act",
        "activation",
        "gate up",
        "g",
        _SHARED,
        f"{_WORDS}, activation",
        f"{_SHARED}.down_proj<",
    ),
    Stage("shared_down", "linear", "g", "s", f"{_SHARED}.down_proj", f"{_WORDS}, down"),
    Stage("shared_gate", "linear", "y", "share", "mlp.shared_expert_gate"),
    Stage("mixture", "gated_sum", "e s share", "d", truth="mlp"),
    Stage("output", "add", "r d", "out", truth="."),
)
QWEN3_NEXT = Family(
    "qwen3-next-80b-a3b",
    {"linear_attention": _DELTA_MIXER, "full_attention": _GATED_MIXER},
    {"moe": _SHARED_MOE},
    {
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
        "num_experts": 16,
        "num_experts_per_tok": 10,
        "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 48,
        "num_hidden_layers": 3,
        "layer_types": ["linear_attention", "full_attention", "linear_attention"],
        "vocab_size": 320,
        "max_position_embeddings": 256,
    },
    {
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 1e7,
            "partial_rotary_factor": 0.25,
        }
    },
)

# Nemotron-H: one mixer a block, Mamba2, attention without RoPE or an MLP without a gate
_NORM = Stage("norm", "norm", "h", "x", "norm", FIRST_NORM)
_ADD = Stage("output", "add", "h o", "out", truth=".")
_MAMBA = (
    _NORM,
    Stage("in", "linear", "x", "p", "mixer.in_proj", "Mamba, input"),
    Stage(
        "conv",
        "mamba_convolution",
        "p",
        "c",
        "mixer",
        "Mamba, convolution",
        "convolution",
    ),
    Stage("state", "state_space", "c p", "s", "mixer", "Mamba", "recurrence"),
    Stage("gated_norm", "group_norm", "s p", "n", "mixer.norm", "Mamba, gated norm"),
    Stage("o", "linear", "n", "o", "mixer.out_proj", "Mamba, output"),
    _ADD,
)
_MIXED_QKV = "mixer.q_proj mixer.k_proj mixer.v_proj"
_PLAIN_ATTENTION = (
    _NORM,
    Stage("qkv", "linear", "x", "q k v", _MIXED_QKV, "query, key and value projection"),
    Stage("attention", "attention", "q k v", "a", "attention", "attention"),
    Stage("o", "linear", "a", "o", "mixer.o_proj", "output projection"),
    _ADD,
)
_DOWN = "mixer.down_proj"
_MLP = (
    _NORM,
    Stage("up", "linear", "x", "u", "mixer.up_proj", "MLP, up"),
    Stage("act", "ungated", "u", "g", "mixer", "MLP, activation", f"{_DOWN}<"),
    Stage("down", "linear", "g", "o", _DOWN, "MLP, down"),
    _ADD,
)
_BLOCKS = ["linear_attention", "full_attention", "mlp"]
NEMOTRON_H = Family(
    "nemotron-h-8b",
    {"linear_attention": _MAMBA, "full_attention": _PLAIN_ATTENTION, "mlp": _MLP},
    {},
    {
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "mamba_num_heads": 8,
        "mamba_head_dim": 16,
        "ssm_state_size": 16,
        "n_groups": 2,
        "num_hidden_layers": 4,
        "layer_types": [*_BLOCKS, "linear_attention"],
        "vocab_size": 320,
        "max_position_embeddings": 256,
    },
    # transformers' prefill alone clamps time steps at this, which is 1e-3
    {"time_step_min": 0.0},
    embed=Stage("embed", "embedding", "tokens", "h", "model.embeddings", EMBED.needs),
    untrained=("state",),
    final=(
        Stage("final_norm", "norm", "h", "x", "model.norm_f", FIRST_NORM),
        FINAL[1],
    ),
)
