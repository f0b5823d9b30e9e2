"""Multi-head latent attention before compression: causal prefill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.ops.attention import paged_family as paged
from generator.ops.attention import ragged_family as ragged
from generator.ops.attention import workloads
from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.mla_paged.family import (
    DEEPSEEK,
    DEEPSEEK_SCALE,
    KIMI,
    KIMI_SCALE,
    scale_of,
)
from generator.ops.reference_text import reference_text

# A head without position of 128 and a rotary part of 64; values have no rotary part.
QK_DIM = 128 + 64
VO_DIM = 128


@dataclass(frozen=True)
class LatentHeads:
    """The constants of one definition of the family."""

    num_heads: int
    models: tuple[str, ...]
    sm_scale: float
    tp: int = 8


HEADS = (
    LatentHeads(16, DEEPSEEK, DEEPSEEK_SCALE),
    LatentHeads(8, KIMI, KIMI_SCALE),
    # all heads on one GPU, with data-parallel attention
    LatentHeads(64, KIMI, KIMI_SCALE, tp=1),
    LatentHeads(128, DEEPSEEK, DEEPSEEK_SCALE, tp=1),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(attention_spec(heads) for heads in HEADS)


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    return attention_spec(LatentHeads(sizes["h"], (model,), scale_of(model)))


def attention_spec(heads: LatentHeads) -> Spec:
    """Return the definition for one set of constants."""
    return Spec(
        name=f"mla_ragged_prefill_causal_h{heads.num_heads}_qk{QK_DIM}_vo{VO_DIM}",
        description=(
            "Multi-head latent attention over contiguous keys and values, causal"
            " prefill, not absorbed: each of the"
            f" {heads.num_heads} query heads has a key and a value head of its own, and"
            f" values are shorter than keys. {paged.EMPTY_PREFILL} lse is base 2."
        ),
        op_type="mla_ragged",
        tags=(
            "stage:prefill",
            *(f"model:{model}" for model in heads.models),
            ragged.FI_API,
            f"tp:{heads.tp}",
        ),
        axes={
            "num_qo_heads": Axis("Query heads.", heads.num_heads),
            "num_kv_heads": Axis("Key and value heads.", heads.num_heads),
            "qk_dim": Axis("Length of a query and of a key.", QK_DIM),
            "vo_dim": Axis("Length of a value and of an output.", VO_DIM),
            **{
                name: ragged.VAR_AXES[name]
                for name in ("total_q", "total_kv", "len_indptr")
            },
        },
        inputs=ragged.inputs("qk_dim", "vo_dim"),
        outputs={
            "output": Tensor(
                ("total_q", "num_qo_heads", "vo_dim"), "bfloat16", "Attention output."
            ),
            "lse": paged.lse_output("total_q"),
        },
        constraints=ragged.CONSTRAINTS,
        reference=reference_text("mla_ragged", "mla_ragged_prefill"),
        captured_from="mla_paged_prefill_causal_h16_ckv512_kpe64_ps1",
        captured_op_type="mla_paged",
        structure=workloads.ragged,
        fits=workloads.ragged_fits,
        traffic=workloads.traffic,
        sm_scale=heads.sm_scale,
    )
