"""Grouped-query attention over contiguous keys and values: causal prefill."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.ops.attention import paged_family as paged
from generator.ops.attention import ragged_family as ragged
from generator.ops.attention import workloads
from generator.ops.attention.variant_family import GEOMETRIES, Geometry, geometry_of
from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text

# Where the lengths of a model without captured workloads come from.
LLAMA = "gqa_ragged_prefill_causal_h32_kv8_d128"
QWEN = "gqa_ragged_prefill_causal_h32_kv4_d128"


@dataclass(frozen=True)
class RaggedHeads:
    """The constants of one definition."""

    num_qo_heads: int
    num_kv_heads: int
    model: str
    tp: int
    captured_from: str
    head_dim: int = 128
    # the length whose inverse root is sm_scale, where it is not head_dim
    scale_of: int = 0


HEADS = (
    RaggedHeads(16, 2, "qwen3-32b", 4, QWEN),
    RaggedHeads(20, 4, "qwen3-14b", 2, QWEN),
    RaggedHeads(24, 8, "llama-3.2-3b", 1, LLAMA),
    RaggedHeads(32, 16, "gemma-3-27b", 1, LLAMA, scale_of=168),
    RaggedHeads(32, 4, "qwen3-30b-a3b", 1, QWEN),
    RaggedHeads(32, 8, "llama-3.1-8b", 1, LLAMA),
    RaggedHeads(5, 1, "llama-4-scout-17b-16e", 8, LLAMA),
    RaggedHeads(6, 1, "minimax-m2", 8, LLAMA),
    RaggedHeads(8, 1, "qwen3-next-80b-a3b", 2, QWEN, head_dim=256),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    variants = (g for g in GEOMETRIES if "ragged" in g.stages)
    return (
        *(attention_spec(heads) for heads in HEADS),
        *(variant_spec(geometry) for geometry in variants),
    )


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    return variant_spec(geometry_of(name, sizes, model))


def variant_spec(geometry: Geometry) -> Spec:
    """Return the definition of a geometry of attention."""
    qo, kv, dim = geometry.num_qo_heads, geometry.num_kv_heads, geometry.head_dim
    inputs = ragged.inputs("head_dim", "head_dim", geometry.dtype)
    return Spec(
        name=f"gqa_ragged_prefill{geometry.words('ragged')}_{geometry.heads}",
        description=(
            "Grouped-query attention over contiguous keys and values, prefill:"
            f" {qo} query heads share {kv} KV heads. {geometry.describe('ragged')}"
            " lse is base 2."
        ),
        op_type="gqa_ragged",
        tags=("stage:prefill", *geometry.tags, ragged.FI_API, geometry.parallel),
        axes=_axes(qo, kv, dim),
        inputs={name: inputs[name] for name in ("q", "k", "v")}
        | geometry.added_inputs
        | {name: inputs[name] for name in ("qo_indptr", "kv_indptr", "sm_scale")},
        outputs=_outputs(geometry.dtype),
        constraints=ragged.CONSTRAINTS,
        reference=reference_text(
            "gqa_ragged", "gqa_ragged_prefill", geometry.variants, **geometry.constants
        ),
        captured_from=LLAMA,
        structure=workloads.ragged,
        fits=workloads.ragged_fits,
        traffic=workloads.traffic,
        sm_scale=geometry.sm_scale,
    )


def attention_spec(heads: RaggedHeads) -> Spec:
    """Return the definition for one set of constants."""
    qo, kv, dim = heads.num_qo_heads, heads.num_kv_heads, heads.head_dim
    return Spec(
        name=f"gqa_ragged_prefill_causal_h{qo}_kv{kv}_d{dim}",
        description=(
            f"Grouped-query attention over contiguous keys and values, causal prefill:"
            f" {qo} query heads share {kv} KV heads. {paged.EMPTY_PREFILL}"
            " lse is base 2."
        ),
        op_type="gqa_ragged",
        tags=(
            "stage:prefill",
            f"model:{heads.model}",
            ragged.FI_API,
            f"tp:{heads.tp}",
        ),
        axes=_axes(qo, kv, dim),
        inputs=ragged.inputs("head_dim", "head_dim"),
        outputs=_outputs("bfloat16"),
        constraints=ragged.CONSTRAINTS,
        reference=reference_text("gqa_ragged", "gqa_ragged_prefill"),
        captured_from=heads.captured_from,
        structure=workloads.ragged,
        fits=workloads.ragged_fits,
        traffic=workloads.traffic,
        sm_scale=1 / math.sqrt(heads.scale_of or dim),
    )


def _outputs(dtype: str) -> dict[str, Tensor]:
    shape = ("total_q", "num_qo_heads", "head_dim")
    return {
        "output": Tensor(shape, dtype, "Attention output."),
        "lse": paged.lse_output("total_q"),
    }


def _axes(num_qo_heads: int, num_kv_heads: int, head_dim: int) -> dict[str, Axis]:
    return {
        "num_qo_heads": Axis("Query heads.", num_qo_heads),
        "num_kv_heads": Axis("Key and value heads.", num_kv_heads),
        "head_dim": Axis("Length of a head.", head_dim),
        **ragged.VAR_AXES,
    }
