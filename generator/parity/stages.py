"""The stages that layers of several families have: plain data, without torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from generator.parity.recipe import FIRST_NORM, Stage

ADDED = "norms that add the residual"
SANDWICH = "norms behind attention and MLP"
HEADS = "query and key norm"
QKV = "self_attn.q_proj self_attn.k_proj self_attn.v_proj"

INPUT = Stage("input_norm", "norm", "h", "x", "input_layernorm", FIRST_NORM)
PROJECTION = "query, key and value projection"
QKV_FUSED = Stage("qkv", "linear", "x", "q k v", QKV, PROJECTION)
Q_NORM = Stage("q_norm", "norm", "q", "q_n", "self_attn.q_norm", HEADS)
K_NORM = Stage("k_norm", "norm", "k", "k_n", "self_attn.k_norm", HEADS)
ROPE = Stage("rope", "rope", "q k", "q_r k_r", "rope", "RoPE")
ROPE_NORMED = Stage("rope", "rope", "q_n k_n", "q_r k_r", "rope", "RoPE")
ATTENTION = Stage("attention", "attention", "q_r k_r v", "a", "attention", "attention")
OUT = Stage("o", "linear", "a", "o", "self_attn.o_proj", "output projection")

AFTER = "post_attention_layernorm"
SUM = Stage("residual", "add", "h o", "r", truth=f"{AFTER}<")
MLP_NORM = Stage("mlp_norm", "add_norm", "o h", "y", AFTER, ADDED)
UP = "mlp.gate_proj mlp.up_proj"
GATE_UP = Stage("gate_up", "linear", "y", "gate up", UP, "MLP, gate and up")
ACT = Stage(
    "act", "activation", "gate up", "g", "mlp", "MLP, activation", "mlp.down_proj<"
)
DOWN = Stage("down", "linear", "g", "d", "mlp.down_proj", "MLP, down")
OUTPUT = Stage("output", "add", "r d", "out", truth=".")

MIXER = (INPUT, QKV_FUSED, ROPE, ATTENTION, OUT)
MIXER_NORMED = (
    INPUT,
    QKV_FUSED,
    Q_NORM,
    K_NORM,
    ROPE_NORMED,
    ATTENTION,
    OUT,
)
MLP = (SUM, MLP_NORM, GATE_UP, ACT, DOWN, OUTPUT)

# Gemma: norms behind attention and MLP as well
GEMMA_MIXER = (
    *MIXER_NORMED,
    Stage("o_norm", "norm", "o", "on", AFTER, SANDWICH),
)
BEFORE_MLP, AFTER_MLP = "pre_feedforward_layernorm", "post_feedforward_layernorm"
GEMMA_MLP = (
    Stage("residual", "add", "h on", "r", truth=f"{BEFORE_MLP}<"),
    Stage("mlp_norm", "add_norm", "on h", "y", BEFORE_MLP, ADDED),
    GATE_UP,
    ACT,
    DOWN,
    Stage("d_norm", "norm", "d", "dn", AFTER_MLP, SANDWICH),
    Stage("output", "add", "r dn", "out", truth="."),
)

# a mixture of experts in place of the MLP
ROUTER = Stage("router", "router", "y", "router", "mlp.gate", "router")
ROUTING = Stage(
    "routing", "routing", "router y", "choice", "mlp.gate", "routing", "mlp.gate+"
)
EXPERTS = Stage("experts", "experts", "y choice", "d", "mlp.experts", "experts")
MOE = (SUM, MLP_NORM, ROUTER, ROUTING, EXPERTS, OUTPUT)
OSS_MOE = (
    SUM,
    MLP_NORM,
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
    replace(EXPERTS, needs=""),
    OUTPUT,
)
SHARED = "mlp.shared_experts"
SHARED_UP = f"{SHARED}.gate_proj {SHARED}.up_proj"
SHARED_DOWN = f"{SHARED}.down_proj"
DEEPSEEK_MOE = (
    SUM,
    MLP_NORM,
    ROUTER,
    ROUTING,
    Stage("experts", "experts", "y choice", "e", "mlp.experts", "experts"),
    Stage(
        "shared_gate_up",
        "linear",
        "y",
        "gate up",
        SHARED_UP,
        "shared expert, gate and up",
    ),
    Stage(
        "shared_act",
        "activation",
        "gate up",
        "g",
        SHARED,
        "shared expert, activation",
        f"{SHARED_DOWN}<",
    ),
    Stage("shared_down", "linear", "g", "s", SHARED_DOWN, "shared expert, down"),
    Stage("mixture", "add", "e s", "d", truth="mlp"),
    OUTPUT,
)

# DeepSeek: keys and values are made of a latent
COMPRESSION = "query, key and value compression"
Q_A, KV_A = "self_attn.q_a_proj", "self_attn.kv_a_proj_with_mqa"
LATENT_NORM = Stage(
    "kv_a_norm",
    "latent_norm",
    "kv_a",
    "c",
    "self_attn.kv_a_layernorm",
    "norm of the latent",
)
KV_B = Stage(
    "kv_b", "linear", "c", "kv", "self_attn.kv_b_proj", "key and value projection"
)
LATENT_ATTENTION = Stage(
    "attention", "latent_attention", "q q_r kv k_r c", "a", "attention", "attention"
)
LATENT_MIXER = (
    INPUT,
    Stage("compressed", "linear", "x", "q_a kv_a", f"{Q_A} {KV_A}", COMPRESSION),
    Stage(
        "q_a_norm",
        "norm",
        "q_a",
        "q_an",
        "self_attn.q_a_layernorm",
        "norm of the query",
    ),
    Stage("q_b", "linear", "q_an", "q", "self_attn.q_b_proj", "query projection"),
    LATENT_NORM,
    Stage("rope", "latent_rope", "q kv_a", "q_r k_r", "rope", "RoPE"),
    KV_B,
    LATENT_ATTENTION,
    OUT,
)
# transformers gives these norms no eps of the config: they have 1e-6, engines the config's
NARROW_LATENT_NORM = replace(LATENT_NORM, needs="=rmsnorm_eps_1em6_h{kv_lora_rank}")
NARROW = {
    "q_a_norm": "=rmsnorm_eps_1em6_h{q_lora_rank}",
    "kv_a_norm": NARROW_LATENT_NORM.needs,
}


def narrow(mixer: Iterable[Stage]) -> tuple[Stage, ...]:
    """Return a mixer whose norms of latents have an eps of 1e-6."""
    return tuple(replace(of, needs=NARROW.get(of.name, of.needs)) for of in mixer)


# DeepSeek-V3.2: an indexer chooses keys, of which short sequences have too few to choose
INDEXED_MIXER = (
    *LATENT_MIXER[:3],
    Stage("indexer", "indexer", "x q_an", "chosen", "self_attn.indexer", "", "keys"),
    *LATENT_MIXER[3:],
)
