"""Families whose architectures the map of modules lacks: stages name definitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from generator.parity.recipe import EMBED, FINAL, Family, Stage
from generator.parity.stages import (
    ACT,
    AFTER_MLP,
    ATTENTION,
    DOWN,
    INPUT,
    K_NORM,
    MIXER,
    MLP,
    MLP_NORM,
    OUT,
    OUTPUT,
    Q_NORM,
    QKV_FUSED,
    ROPE,
    ROPE_NORMED,
    SUM,
)
from generator.parity.tiny import TINY

_H = "{hidden_size}"
_NAMES = {
    "embed": f"embedding_v{{vocab_size}}_h{_H}",
    "input_norm": f"rmsnorm_h{_H}",
    "qkv": f"gemm_bf16_n{{qkv_size}}_k{_H}",
    "rope": "rope_with_cos_sin_cache_neox_style_d{head_dim}_rd{head_dim}",
    "attention": "h{num_attention_heads}_kv{num_key_value_heads}_d{head_dim}",
    "o": f"gemm_bf16_n{_H}_k{{q_size}}",
    "mlp_norm": f"fused_add_rmsnorm_h{_H}",
    "gate_up": f"gemm_bf16_n{{gate_up_size}}_k{_H}",
    "act": "silu_and_mul_i{intermediate_size}",
    "down": f"gemm_bf16_n{_H}_k{{intermediate_size}}",
    "final_norm": f"rmsnorm_h{_H}",
    "lm_head": f"gemm_bf16_n{{vocab_size}}_k{_H}",
}
_BROAD_EPS = {
    "input_norm": f"rmsnorm_eps_1em5_h{_H}",
    "mlp_norm": f"fused_add_rmsnorm_eps_1em5_h{_H}",
    "final_norm": f"rmsnorm_eps_1em5_h{_H}",
}


def named(stages: Iterable[Stage], **others: str) -> tuple[Stage, ...]:
    """Return stages that name their definitions, by figures of the model."""
    names = {**_NAMES, **others}
    return tuple(
        replace(stage, needs=f"={names[stage.name]}" if stage.name in names else "")
        for stage in stages
    )


def figures(kind: str, **figures: float | str) -> dict[str, object]:
    """Return published figures, with the sizes of fused products."""
    heads, kv = (int(figures[f"num_{of}_heads"]) for of in ("attention", "key_value"))
    dim = int(figures["head_dim"])
    return {
        "model_type": kind,
        **figures,
        "q_size": heads * dim,
        "qkv_size": (heads + 2 * kv) * dim,
        "gate_up_size": 2 * int(figures["intermediate_size"]),
    }


def _default(theta: float) -> dict[str, object]:
    return {"rope_parameters": {"rope_type": "default", "rope_theta": theta}}


_EMBED = named((EMBED,))[0]
_UNTURNED = (INPUT, QKV_FUSED, replace(ATTENTION, reads="q k v"), OUT)
_PLAIN = {"pad_token_id": None, "bos_token_id": 1, "eos_token_id": 2}

# OLMo 2: norms behind attention and MLP alone, and of all heads together
_ALL = {
    "q_norm": "rmsnorm_h{q_size}",
    "k_norm": "rmsnorm_h{kv_size}",
    "o_norm": f"rmsnorm_h{_H}",
    "d_norm": f"rmsnorm_h{_H}",
}
_AFTER = "post_attention_layernorm"
_OLMO_MIXER = (
    replace(QKV_FUSED, reads="h"),
    Q_NORM,
    K_NORM,
    ROPE_NORMED,
    ATTENTION,
    OUT,
    Stage("o_norm", "norm", "o", "on", _AFTER),
)
_OLMO_MLP = (
    Stage("residual", "add", "h on", "y", truth="mlp<"),
    *(of for of in MLP if of.name in ("gate_up", "act", "down")),
    Stage("d_norm", "norm", "d", "dn", AFTER_MLP),
    Stage("output", "add", "y dn", "out", truth="."),
)

# Arcee: an MLP without a gate
_ARCEE_MLP = (
    SUM,
    MLP_NORM,
    Stage("up", "linear", "y", "u", "mlp.up_proj"),
    replace(ACT, kind="ungated", reads="u"),
    DOWN,
    OUTPUT,
)
_LATE_MIXER = (
    INPUT,
    QKV_FUSED,
    replace(ROPE, writes="q_t k_t"),
    replace(Q_NORM, reads="q_t", writes="q_r", at="self_attn.query_layernorm"),
    replace(K_NORM, reads="k_t", writes="k_r", at="self_attn.key_layernorm"),
    ATTENTION,
    OUT,
)

UNMAPPED: Mapping[str, Family] = {
    # every fourth layer has no RoPE
    "smollm3": Family(
        "smollm3-3b",
        {"": named(MIXER), "unturned": named(_UNTURNED)},
        {"dense": named(MLP)},
        {**TINY, "no_rope_layers": [1, 0, 1]},
        {**_PLAIN, **_default(5e6)},
        embed=_EMBED,
        final=named(FINAL),
        published=figures(
            "smollm3",
            hidden_size=2048,
            intermediate_size=11008,
            num_hidden_layers=36,
            num_attention_heads=16,
            num_key_value_heads=4,
            head_dim=128,
            vocab_size=128256,
            rms_norm_eps=1e-6,
        ),
    ),
    "seed-oss": Family(
        "seed-oss-36b",
        {"": named(MIXER)},
        {"dense": named(MLP)},
        TINY,
        {**_PLAIN, **_default(1e7)},
        embed=_EMBED,
        final=named(FINAL),
        published=figures(
            "seed_oss",
            hidden_size=5120,
            intermediate_size=27648,
            num_hidden_layers=64,
            num_attention_heads=80,
            num_key_value_heads=8,
            head_dim=128,
            vocab_size=155136,
            rms_norm_eps=1e-6,
        ),
    ),
    "olmo2": Family(
        "olmo-2-13b",
        {"": named(_OLMO_MIXER, **_ALL)},
        {"dense": named(_OLMO_MLP, **_ALL)},
        {**TINY, "head_dim": 8},
        {**_PLAIN, **_default(5e5)},
        embed=_EMBED,
        final=named(FINAL),
        published={
            **figures(
                "olmo2",
                hidden_size=5120,
                intermediate_size=13824,
                num_hidden_layers=40,
                num_attention_heads=40,
                num_key_value_heads=40,
                head_dim=128,
                vocab_size=100352,
                rms_norm_eps=1e-6,
            ),
            "kv_size": 5120,
        },
    ),
    "arcee": Family(
        "afm-4.5b",
        {"": named(MIXER, **_BROAD_EPS)},
        {
            "dense": named(
                _ARCEE_MLP,
                **_BROAD_EPS,
                act="relu2_i{intermediate_size}",
                up=f"gemm_bf16_n{{intermediate_size}}_k{_H}",
            )
        },
        TINY,
        {**_PLAIN, **_default(1e4)},
        embed=_EMBED,
        final=named(FINAL, **_BROAD_EPS),
        published=figures(
            "arcee",
            hidden_size=2560,
            intermediate_size=18432,
            num_hidden_layers=36,
            num_attention_heads=20,
            num_key_value_heads=4,
            head_dim=128,
            vocab_size=128004,
            rms_norm_eps=1e-5,
        ),
    ),
    # queries and keys are normalised behind RoPE
    "hunyuan": Family(
        "hunyuan-7b",
        {
            "": named(
                _LATE_MIXER,
                **_BROAD_EPS,
                q_norm="rmsnorm_eps_1em5_h{head_dim}",
                k_norm="rmsnorm_eps_1em5_h{head_dim}",
            )
        },
        {"dense": named(MLP, **_BROAD_EPS)},
        TINY,
        {**_PLAIN, **_default(1e4)},
        embed=_EMBED,
        final=named(FINAL, **_BROAD_EPS),
        published=figures(
            "hunyuan_v1_dense",
            hidden_size=4096,
            intermediate_size=14336,
            num_hidden_layers=32,
            num_attention_heads=32,
            num_key_value_heads=8,
            head_dim=128,
            vocab_size=128167,
            rms_norm_eps=1e-5,
        ),
    ),
}
