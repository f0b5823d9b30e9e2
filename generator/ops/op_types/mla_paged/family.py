"""Multi-head latent attention over a paged cache: decode, prefill, trees of drafts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.ops.attention import paged_family as paged
from generator.ops.attention import workloads
from generator.ops.attention.variant_family import MASK, MASK_LEN, TREES
from generator.ops.family import Axis, Spec, Tensor, no_traffic
from generator.ops.reference_text import reference_text

HEAD_DIM_CKV = 512
HEAD_DIM_KPE = 64
FI_API = "fi_api:flashinfer.mla.BatchMLAPagedAttentionWrapper"

# 1 / sqrt(192), for keys of 128 + 64 before compression. YaRN multiplies it by mscale
# twice: DeepSeek's is what was captured, of a factor of 40, and Kimi K2's has a factor
# of 32 (K2 Thinking and K2.5 one of 64, which makes 0.1447); mscale_all_dim is 1 in all.
PLAIN_SCALE = 1 / math.sqrt(192)
DEEPSEEK_SCALE = 0.1352337747812271
KIMI_SCALE = PLAIN_SCALE * (0.1 * 1.0 * math.log(32.0) + 1.0) ** 2

HEADS = ("num_qo_heads", "head_dim_ckv", "head_dim_kpe", "page_size")
ENDS = ("num_pages", "len_indptr", "num_kv_indices")
DECODE_AXES = ("batch_size", *HEADS, *ENDS)
PREFILL_AXES = (*HEADS, "total_q", *ENDS)


@dataclass(frozen=True)
class Latent:
    """The constants of one definition of the family."""

    num_qo_heads: int
    page_size: int
    prefill: bool
    models: tuple[str, ...]
    sm_scale: float
    # the cache is stored in 8 bits
    is_e4m3: bool = False
    tp: int = 8
    # it takes return_lse, as calls of FlashInfer's wrapper pass it
    flag: bool = False
    # prefill with a mask of the caller's: a tree of drafts is verified
    masked: bool = False


DEEPSEEK = ("deepseek-v3", "deepseek-r1")
KIMI = ("kimi-k2",)

LATENTS = (
    Latent(16, 1, False, DEEPSEEK, DEEPSEEK_SCALE),
    Latent(16, 64, False, DEEPSEEK, DEEPSEEK_SCALE),
    Latent(8, 1, False, KIMI, KIMI_SCALE),
    Latent(16, 1, True, DEEPSEEK, DEEPSEEK_SCALE),
    Latent(16, 64, True, DEEPSEEK, DEEPSEEK_SCALE),
    Latent(8, 1, True, KIMI, KIMI_SCALE),
    Latent(16, 64, False, DEEPSEEK, DEEPSEEK_SCALE, is_e4m3=True),
    Latent(16, 64, True, DEEPSEEK, DEEPSEEK_SCALE, is_e4m3=True),
    Latent(8, 64, False, KIMI, KIMI_SCALE, is_e4m3=True),
    Latent(8, 64, True, KIMI, KIMI_SCALE, is_e4m3=True),
    Latent(8, 64, False, KIMI, KIMI_SCALE),
    Latent(8, 64, True, KIMI, KIMI_SCALE),
    # all heads on one GPU, with data-parallel attention
    Latent(64, 64, False, KIMI, KIMI_SCALE, tp=1),
    Latent(64, 64, True, KIMI, KIMI_SCALE, tp=1),
    Latent(128, 64, False, DEEPSEEK, DEEPSEEK_SCALE, tp=1),
    Latent(128, 64, True, DEEPSEEK, DEEPSEEK_SCALE, tp=1),
    # of larger pages calls do not say how long the last one is
    Latent(16, 1, False, DEEPSEEK, DEEPSEEK_SCALE, flag=True),
    Latent(8, 1, False, KIMI, KIMI_SCALE, flag=True),
    # verified by trees of draft tokens (EAGLE)
    Latent(16, 64, True, DEEPSEEK, DEEPSEEK_SCALE, masked=True),
    Latent(128, 64, True, DEEPSEEK, DEEPSEEK_SCALE, tp=1, masked=True),
    Latent(8, 64, True, KIMI, KIMI_SCALE, masked=True),
    Latent(64, 64, True, KIMI, KIMI_SCALE, tp=1, masked=True),
)
SCALES = {
    "ckv_scale": Tensor(
        None, "float32", "Keys' latents and values are ckv_cache times this; positive."
    ),
    "kpe_scale": Tensor(
        None, "float32", "Rotary parts of keys are kpe_cache times this; positive."
    ),
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(latent_spec(latent) for latent in LATENTS)


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    masked = "_prefill_custom_mask_" in name
    return latent_spec(
        Latent(
            sizes["h"],
            sizes["ps"],
            "_prefill_causal_" in name or masked,
            (model,),
            scale_of(model),
            "_kve4m3_" in name,
            masked=masked,
        )
    )


def scale_of(model: str) -> float:
    """Return the sm_scale of a model's workloads; 1 / sqrt(192) where YaRN adds none."""
    known = {
        **dict.fromkeys(DEEPSEEK, DEEPSEEK_SCALE),
        **dict.fromkeys(KIMI, KIMI_SCALE),
    }
    return known.get(model, PLAIN_SCALE)


def latent_spec(latent: Latent) -> Spec:
    """Return the definition for one set of constants."""
    stage = _stage(latent)
    rows = "total_q" if latent.prefill else "batch_size"
    module = "mla_paged_prefill" if latent.prefill else "mla_paged_decode"
    # the tokens of a captured decode are those before a tree
    captured = "decode" if latent.masked else stage
    special = "_kve4m3" if latent.is_e4m3 else "_return_lse" * latent.flag
    scales = SCALES if latent.is_e4m3 else {}
    suffix = f"_ckv{HEAD_DIM_CKV}_kpe{HEAD_DIM_KPE}_ps"
    paged_inputs = paged.structural_inputs(latent.prefill, latent.page_size)
    return Spec(
        name=(
            f"mla_paged_{stage}{special}_h{latent.num_qo_heads}{suffix}{latent.page_size}"
        ),
        description=_description(latent),
        op_type="mla_paged",
        tags=(
            "stage:prefill" if latent.prefill else "stage:decode",
            *(f"model:{model}" for model in latent.models),
            *(() if latent.masked else (FI_API,)),
            f"tp:{latent.tp}",
        ),
        axes={name: _axis(name, latent) for name in _axes(latent)},
        inputs={
            **_dense_inputs(rows, latent),
            **scales,
            **({"custom_mask": MASK} if latent.masked else {}),
            **paged_inputs,
            **({"return_lse": paged.RETURN_LSE} if latent.flag else {}),
        },
        outputs={
            "output": Tensor(
                (rows, "num_qo_heads", "head_dim_ckv"),
                "bfloat16",
                "Attention output, still in the latent space.",
            ),
            "lse": paged.lse_output(rows),
        },
        constraints=(
            paged.TOTAL_Q if latent.prefill else paged.LEN_INDPTR,
            paged.NUM_KV_INDICES,
            *(f"{name} > 0" for name in scales),
            *((MASK_LEN,) if latent.masked else ()),
        ),
        reference=reference_text(
            "mla_paged",
            module,
            ["custom_mask"] * latent.masked
            + ["kve4m3"] * latent.is_e4m3
            + ["ps1"] * (latent.page_size == 1)
            + ["return_lse"] * latent.flag,
        ),
        captured_from=f"mla_paged_{captured}_h16{suffix}1",
        structure=workloads.verified if latent.masked else workloads.paged,
        fits=workloads.verified_fits if latent.masked else workloads.paged_fits,
        traffic=no_traffic if latent.masked else workloads.traffic,
        sm_scale=latent.sm_scale,
        scalars={
            **(workloads.LATENT_SCALES if latent.is_e4m3 else {}),
            **({"return_lse": True} if latent.flag else {}),
        },
    )


def _axes(latent: Latent) -> tuple[str, ...]:
    if not latent.prefill:
        return DECODE_AXES
    batch = ("batch_size",) if latent.page_size > 1 else ()
    return (*PREFILL_AXES, *batch, *("mask_len",) * latent.masked)


def _axis(name: str, latent: Latent) -> Axis:
    consts = {
        "num_qo_heads": Axis("Query heads.", latent.num_qo_heads),
        "head_dim_ckv": Axis("Length of the compressed KV.", HEAD_DIM_CKV),
        "head_dim_kpe": Axis("Length of the rotary part of a key.", HEAD_DIM_KPE),
        "page_size": Axis("Tokens a page holds.", latent.page_size),
    }
    return consts[name] if name in consts else paged.VAR_AXES[name]


def _stage(latent: Latent) -> str:
    if not latent.prefill:
        return "decode"
    return "prefill_custom_mask" if latent.masked else "prefill_causal"


def _description(latent: Latent) -> str:
    stage, ends = "decode", paged.EMPTY_DECODE
    if latent.masked:
        stage, ends = "a tree of drafts verified", f"{TREES} {paged.NO_KEY}"
    elif latent.prefill:
        stage, ends = "causal prefill", paged.EMPTY_PREFILL
    return " ".join(
        (
            f"Multi-head latent attention over a paged cache, {stage}, with the",
            "projections absorbed: logits are q_nope . ckv + q_pe . kpe, the values",
            f"are ckv, {latent.num_qo_heads} query heads share one cache.",
            paged.KV_LEN if latent.page_size > 1 else paged.KV_LEN_PS1,
            *(
                ("The cache is stored in 8 bits, each part with a scale of its own.",)
                if latent.is_e4m3
                else ()
            ),
            ends,
            "lse is base 2.",
            *((paged.CALLED,) if latent.flag else ()),
        )
    )


def _dense_inputs(rows: str, latent: Latent) -> dict[str, Tensor]:
    dtype = "float8_e4m3fn" if latent.is_e4m3 else "bfloat16"
    return {
        "q_nope": Tensor(
            (rows, "num_qo_heads", "head_dim_ckv"),
            "bfloat16",
            "Queries without position, projected to the latent space.",
        ),
        "q_pe": Tensor(
            (rows, "num_qo_heads", "head_dim_kpe"),
            "bfloat16",
            "Rotary part of the queries.",
        ),
        "ckv_cache": Tensor(
            ("num_pages", "page_size", "head_dim_ckv"),
            dtype,
            "Compressed KV, in pages: the keys and the values.",
        ),
        "kpe_cache": Tensor(
            ("num_pages", "page_size", "head_dim_kpe"),
            dtype,
            "Rotary part of the keys, in pages.",
        ),
    }
