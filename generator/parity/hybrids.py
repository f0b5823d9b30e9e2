"""Families whose layers keep a state, beside those with attention: plain data."""

from __future__ import annotations

from dataclasses import replace

from generator.parity.latents import WHOLE_QUERY
from generator.parity.recipe import EMBED, FINAL, FIRST_NORM, Family, Stage
from generator.parity.stages import (
    DEEPSEEK_MOE,
    KV_B,
    LATENT_ATTENTION,
    MLP,
    OUT,
    QKV,
)

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
SHARED_MOE = (
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
# Qwen3.5: its delta net multiplies by four weights
_SPLIT = {
    "in": replace(
        _DELTA_MIXER[1],
        writes="mixed z",
        at=f"{_NET}.in_proj_qkv {_NET}.in_proj_z",
    ),
    "gates": replace(
        _DELTA_MIXER[2], writes="b a", at=f"{_NET}.in_proj_b {_NET}.in_proj_a"
    ),
    "delta": replace(_DELTA_MIXER[4], reads="c b a"),
    "gated_norm": replace(_DELTA_MIXER[5], reads="m z"),
}
_SPLIT_MIXER = tuple(_SPLIT.get(stage.name, stage) for stage in _DELTA_MIXER)
_TINY_NET = {
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
}
QWEN3_NEXT = Family(
    "qwen3-next-80b-a3b",
    {"linear_attention": _DELTA_MIXER, "full_attention": _GATED_MIXER},
    {"moe": SHARED_MOE},
    _TINY_NET,
    {
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 1e7,
            "partial_rotary_factor": 0.25,
        }
    },
)

_TINY_SPLIT = {
    **_TINY_NET,
    "num_experts_per_tok": 8,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
}
QWEN3_5 = {
    "qwen3.5": Family(
        "qwen3.5-27b",
        {"linear_attention": _SPLIT_MIXER, "full_attention": _GATED_MIXER},
        {"dense": MLP},
        _TINY_SPLIT,
        {"model_type": "qwen3_5_text"},
    ),
    "qwen3.5-moe": Family(
        "qwen3.5-35b-a3b",
        {"linear_attention": _SPLIT_MIXER, "full_attention": _GATED_MIXER},
        {"moe": SHARED_MOE},
        _TINY_SPLIT,
        {"model_type": "qwen3_5_moe_text"},
    ),
}

# Kimi Linear: a gate for each channel of a key, and latent attention without RoPE
_DELTA = "delta attention"
_KIMI_MIXER = (
    _INPUT,
    Stage("qkv", "linear", "x", "q k v", QKV, f"{_DELTA}, query, key and value"),
    Stage(
        "conv",
        "delta_convolution",
        "q k v",
        "c",
        _ATTENTION,
        f"{_DELTA}, convolution",
        "convolution",
    ),
    *(
        Stage(name, "linear", reads, writes, f"{_ATTENTION}.{at}", f"{_DELTA}, {needs}")
        for name, reads, writes, at, needs in (
            ("decay_down", "x", "f", "forget_gate.f_a_proj", "decay, down"),
            ("decay_up", "f", "a", "forget_gate.f_b_proj", "decay, up"),
            ("beta", "x", "b", "b_proj", "beta"),
            ("gate_down", "x", "g_a", "g_a_proj", "output gate, down"),
            ("gate_up_z", "g_a", "z", "g_b_proj", "output gate, up"),
        )
    ),
    Stage("delta", "kimi_rule", "c a b", "m", _ATTENTION, _DELTA, "recurrence"),
    Stage(
        "gated_norm",
        "gated_norm",
        "m z",
        "n",
        f"{_ATTENTION}.o_norm",
        f"{_DELTA}, gated norm",
    ),
    Stage("o", "linear", "n", "o", f"{_ATTENTION}.o_proj", f"{_DELTA}, output"),
)
_UNTURNED_LATENT = (
    *WHOLE_QUERY,
    KV_B,
    replace(LATENT_ATTENTION, reads="q q kv kv_a c"),
    OUT,
)
KIMI_LINEAR = Family(
    "kimi-linear-48b-a3b",
    {"linear_attention": _KIMI_MIXER, "full_attention": _UNTURNED_LATENT},
    {"dense": MLP, "moe": DEEPSEEK_MOE},
    {
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "linear_head_dim": 16,
        "linear_num_heads": 4,
        "kv_lora_rank": 32,
        "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 8,
        "v_head_dim": 16,
        "head_dim": 8,
        "num_experts": 16,
        "moe_intermediate_size": 32,
        "num_hidden_layers": 3,
        "layer_types": ["linear_attention", "full_attention", "linear_attention"],
        "mlp_layer_types": ["dense", "sparse", "sparse"],
        "vocab_size": 320,
        "max_position_embeddings": 256,
    },
    {"pad_token_id": None},
    real={"mlp_layer_types": ["dense", "sparse"]},
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
_BLOCK_SHARED = "mixer.shared_experts"
# Nemotron 3: experts without a gate
_BLOCK_MOE = (
    _NORM,
    Stage("router", "router", "x", "router", "mixer.gate", "router"),
    Stage(
        "routing",
        "routing",
        "router x",
        "choice",
        "mixer.gate",
        "routing",
        "mixer.gate+",
    ),
    Stage("experts", "experts", "x choice", "e", "mixer.experts", "experts"),
    Stage("up", "linear", "x", "u", f"{_BLOCK_SHARED}.up_proj", "shared expert, up"),
    Stage(
        "act",
        "ungated",
        "u",
        "g",
        _BLOCK_SHARED,
        "shared expert, activation",
        f"{_BLOCK_SHARED}.down_proj<",
    ),
    Stage(
        "down", "linear", "g", "s", f"{_BLOCK_SHARED}.down_proj", "shared expert, down"
    ),
    Stage("mixture", "add", "e s", "o", truth="mixer"),
    _ADD,
)
_TINY_BLOCKS = {
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
}
NEMOTRON_H = Family(
    "nemotron-h-8b",
    {"linear_attention": _MAMBA, "full_attention": _PLAIN_ATTENTION, "mlp": _MLP},
    {},
    _TINY_BLOCKS,
    # transformers' prefill alone clamps time steps at this, which is 1e-3
    {"time_step_min": 0.0},
    embed=Stage("embed", "embedding", "tokens", "h", "model.embeddings", EMBED.needs),
    untrained=("state",),
    final=(
        Stage("final_norm", "norm", "h", "x", "model.norm_f", FIRST_NORM),
        FINAL[1],
    ),
)
NEMOTRON_3 = replace(
    NEMOTRON_H,
    model="nemotron-3-nano",
    mixers={
        "linear_attention": _MAMBA,
        "full_attention": _PLAIN_ATTENTION,
        "moe": _BLOCK_MOE,
    },
    tiny={
        **_TINY_BLOCKS,
        "n_routed_experts": 16,
        "moe_intermediate_size": 32,
        "moe_shared_expert_intermediate_size": 48,
        "layer_types": [*_BLOCKS[:2], "moe", "linear_attention"],
    },
)
