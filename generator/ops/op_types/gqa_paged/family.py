"""Grouped-query attention over a paged KV cache: decode and causal prefill."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from generator.ops.attention import paged_family as paged
from generator.ops.attention import workloads
from generator.ops.attention.variant_family import (
    GEOMETRIES,
    MASK_LEN,
    Geometry,
    geometry_of,
)
from generator.ops.family import Axis, Spec, Tensor, no_traffic
from generator.ops.op_types.gqa_paged.family_table import (
    CALLED,
    DECODE,
    DECODE_API,
    DECODE_ENDS,
    HEADS,
    PREFILL,
    PREFILL_API,
    PagedHeads,
)
from generator.ops.reference_text import reference_text

HEAD_DIM = 128
VARIANT_PAGE_SIZE = 64
# the length whose inverse root is the model's sm_scale, where it is not HEAD_DIM
_SCALE_OF = {"model:gemma-3-27b": 168}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    decode = tuple(attention_spec(heads, prefill=False) for heads in (*DECODE, *CALLED))
    prefill = tuple(attention_spec(heads, prefill=True) for heads in PREFILL)
    variants = (
        variant_spec(geometry, stage)
        for stage in ("decode", "prefill")
        for geometry in GEOMETRIES
        if stage in geometry.stages
    )
    return (*decode, *prefill, *variants)


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    geometry = geometry_of(name, sizes, model)
    stage = "decode" if name.startswith("gqa_paged_decode_") else "prefill"
    return variant_spec(geometry, stage, sizes["ps"])


def variant_spec(
    geometry: Geometry, stage: str, page_size: int = VARIANT_PAGE_SIZE
) -> Spec:
    """Return the definition of a geometry of attention, at one of `stages`.

    Raises NoVariant where there is no reference: only plain attention has one for pages
    of one token.
    """
    prefill = stage == "prefill"
    rows = "total_q" if prefill else "batch_size"
    masked = "custom_mask" in geometry.added_inputs
    ends = (*("total_q",) * prefill, *("mask_len",) * masked)
    heads = PagedHeads(
        geometry.num_qo_heads,
        geometry.num_kv_heads,
        page_size,
        ("batch_size", *HEADS, "page_size", "num_pages", *DECODE_ENDS, *ends),
        geometry.tags,
        geometry.head_dim,
    )
    api = PREFILL_API if prefill or geometry.sinks else DECODE_API
    return Spec(
        name=(
            f"gqa_paged_{stage}{geometry.words(stage)}_{geometry.heads}"
            f"_ps{heads.page_size}"
        ),
        description=(
            f"Grouped-query attention over a paged KV cache, {stage}:"
            f" {heads.num_qo_heads} query heads share {heads.num_kv_heads} KV heads."
            f" {paged.KV_LEN if page_size > 1 else paged.KV_LEN_PS1}"
            f" {geometry.describe(stage)} lse is base 2."
        ),
        op_type="gqa_paged",
        tags=(f"stage:{stage}", *geometry.tags, api, geometry.parallel),
        axes={name: _axis(name, heads) for name in heads.axes},
        inputs={
            "q": _query(prefill, geometry.query_dtype),
            "k_cache": _cache("Keys", geometry),
            "v_cache": _cache("Values", geometry),
            **geometry.added_inputs,
            **paged.structural_inputs(prefill, heads.page_size),
        },
        outputs=_outputs(rows, geometry.dtype),
        constraints=(
            *_constraints(heads, prefill),
            *((MASK_LEN,) if masked else ()),
            *(
                f"{name} > 0" if tensor.shape is None else f"{name}.min() > 0"
                for name, tensor in geometry.added_inputs.items()
                if name.endswith("_scale")
            ),
        ),
        reference=reference_text(
            "gqa_paged",
            f"gqa_paged_{stage}",
            (*geometry.variants, *(("ps1",) if page_size == 1 else ())),
            **geometry.constants,
        ),
        captured_from=(
            "gqa_paged_decode_h32_kv8_d128_ps1"
            if masked or not prefill
            else "gqa_paged_prefill_causal_h32_kv8_d128_ps1"
        ),
        structure=workloads.verified if masked else workloads.paged,
        fits=workloads.verified_fits if masked else workloads.paged_fits,
        traffic=no_traffic if masked else workloads.traffic,
        sm_scale=geometry.sm_scale,
        scalars=workloads.SCALES if geometry.special == "kve4m3" else {},
    )


def _query(prefill: bool, dtype: str = "bfloat16") -> Tensor:
    return Tensor(
        ("total_q" if prefill else "batch_size", "num_qo_heads", "head_dim"),
        dtype,
        "Queries of all sequences, one after the other."
        if prefill
        else "One query a sequence.",
    )


def _outputs(rows: str, dtype: str = "bfloat16") -> dict[str, Tensor]:
    shape = (rows, "num_qo_heads", "head_dim")
    return {
        "output": Tensor(shape, dtype, "Attention output."),
        "lse": paged.lse_output(rows),
    }


def attention_spec(heads: PagedHeads, *, prefill: bool) -> Spec:
    """Return the definition for one set of constants."""
    stage = "prefill_causal" if prefill else "decode"
    rows = "total_q" if prefill else "batch_size"
    qo, kv, page_size = heads.num_qo_heads, heads.num_kv_heads, heads.page_size
    module = "gqa_paged_prefill" if prefill else "gqa_paged_decode"
    return Spec(
        name=(
            f"gqa_paged_{stage}{'_return_lse' * heads.flag}_h{qo}_kv{kv}_d{HEAD_DIM}"
            f"_ps{page_size}"
        ),
        description=_description(heads, prefill),
        op_type="gqa_paged",
        tags=("stage:prefill" if prefill else "stage:decode", *heads.tags),
        axes={name: _axis(name, heads) for name in heads.axes},
        inputs={
            "q": _query(prefill),
            "k_cache": _cache("Keys"),
            "v_cache": _cache("Values"),
            **paged.structural_inputs(prefill, page_size),
            **({"return_lse": paged.RETURN_LSE} if heads.flag else {}),
        },
        outputs=_outputs(rows),
        constraints=_constraints(heads, prefill),
        reference=reference_text(
            "gqa_paged",
            module,
            (*("ps1",) * (page_size == 1), *("return_lse",) * heads.flag),
        ),
        captured_from=_captured_from(heads, stage),
        structure=workloads.paged,
        fits=workloads.paged_fits,
        traffic=workloads.traffic,
        sm_scale=1 / math.sqrt(_SCALE_OF.get(heads.tags[0], HEAD_DIM)),
        scalars={"return_lse": True} if heads.flag else {},
    )


def _captured_from(heads: PagedHeads, stage: str) -> str:
    # Qwen's models follow the captured Qwen3-30B-A3B, the others Llama-3.1-8B.
    qwen = all("qwen" in tag for tag in heads.tags if tag.startswith("model:"))
    return f"gqa_paged_{stage}_h32_kv{4 if qwen else 8}_d{HEAD_DIM}_ps1"


def _description(heads: PagedHeads, prefill: bool) -> str:
    stage = "causal prefill" if prefill else "decode"
    return " ".join(
        (
            f"Grouped-query attention over a paged KV cache, {stage}:",
            f"{heads.num_qo_heads} query heads share {heads.num_kv_heads} KV heads.",
            paged.KV_LEN if heads.page_size > 1 else paged.KV_LEN_PS1,
            paged.EMPTY_PREFILL if prefill else paged.EMPTY_DECODE,
            "lse is base 2.",
            *((paged.CALLED,) if heads.flag else ()),
        )
    )


def _axis(name: str, heads: PagedHeads) -> Axis:
    consts = {
        "num_qo_heads": Axis("Query heads.", heads.num_qo_heads),
        "num_kv_heads": Axis("Key and value heads.", heads.num_kv_heads),
        "head_dim": Axis("Length of a head.", heads.head_dim),
        "page_size": Axis("Tokens a page holds.", heads.page_size),
    }
    return consts[name] if name in consts else paged.VAR_AXES[name]


def _cache(what: str, geometry: Geometry | None = None) -> Tensor:
    page, layout = ("page_size", "num_kv_heads"), "NHD"
    if geometry is not None and geometry.special == "hnd":
        page, layout = (page[1], page[0]), "HND"
    return Tensor(
        ("num_pages", *page, "head_dim"),
        "bfloat16" if geometry is None else geometry.cache_dtype,
        f"{what}, in pages (layout {layout}).",
    )


def _constraints(heads: PagedHeads, prefill: bool) -> tuple[str, ...]:
    # A definition without the axis batch_size can't tie len_indptr to it.
    first = (paged.LEN_INDPTR,) if "batch_size" in heads.axes else ()
    total_q = (paged.TOTAL_Q,) if prefill else ()
    return (*first, *total_q, paged.NUM_KV_INDICES)
