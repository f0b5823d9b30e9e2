"""Attention of one sequence over contiguous keys and values: prefill and decode."""

from __future__ import annotations

import math
from dataclasses import dataclass

from generator.ops.attention.paged_family import lse_output
from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.gqa_single.workloads import one_fits, one_sequence, traffic
from generator.ops.reference_text import reference_text

# a captured batch, taken for one sequence
LLAMA = "gqa_ragged_prefill_causal_h32_kv8_d128"


@dataclass(frozen=True)
class SingleHeads:
    """The constants of some definitions, and the models that have them."""

    num_qo_heads: int
    num_kv_heads: int
    head_dim: int
    models: tuple[str, ...]
    stages: tuple[str, ...] = ("prefill_causal", "decode")


_ENCODER = ("prefill_noncausal",)
HEADS = (
    SingleHeads(32, 8, 128, ("llama-3.1-8b",)),
    SingleHeads(32, 4, 128, ("qwen3-30b-a3b",)),
    SingleHeads(16, 2, 256, ("qwen3-next-80b-a3b",)),
    SingleHeads(20, 20, 64, ("whisper-large-v3",), stages=_ENCODER),
    SingleHeads(16, 16, 64, ("bge-large-en-v1.5",), stages=_ENCODER),
)
_MASKS = {
    "prefill_causal": (
        "The mask is causal and aligned bottom-right: query i of q_len sees keys 0 ..."
        " kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf."
    ),
    "prefill_noncausal": "There is no mask: every query sees all keys.",
    "decode": "The one query sees all keys.",
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(single_spec(heads, s) for heads in HEADS for s in heads.stages)


def single_spec(heads: SingleHeads, stage: str) -> Spec:
    """Return the definition of one stage: `prefill_causal`, for one."""
    qo, kv, dim = heads.num_qo_heads, heads.num_kv_heads, heads.head_dim
    kind = stage.partition("_")[0]
    rows = ("q_len",) if kind == "prefill" else ()
    query = (*rows, "num_qo_heads", "head_dim")
    lse = lse_output("q_len")
    return Spec(
        name=f"gqa_single_{stage}_h{qo}_kv{kv}_d{dim}",
        description=(
            f"Grouped-query attention of one sequence, {kind}: {qo} query heads share"
            f" {kv} KV heads. {_MASKS[stage]} lse is base 2."
        ),
        op_type="gqa_single",
        tags=(
            f"stage:{kind}",
            *(f"model:{model}" for model in heads.models),
            f"fi_api:flashinfer.{kind}.single_{kind}_with_kv_cache",
            "tp:1",
        ),
        axes={
            "num_qo_heads": Axis("Query heads.", qo),
            "num_kv_heads": Axis("Key and value heads.", kv),
            "head_dim": Axis("Length of a head.", dim),
            **{name: Axis("Number of queries.") for name in rows},
            "kv_len": Axis("Number of keys, one or more."),
        },
        inputs={
            "q": Tensor(query, "bfloat16", "Queries." if rows else "The query."),
            "k": Tensor(("kv_len", "num_kv_heads", "head_dim"), "bfloat16", "Keys."),
            "v": Tensor(("kv_len", "num_kv_heads", "head_dim"), "bfloat16", "Values."),
            "sm_scale": Tensor(None, "float32", "Factor of the logits before softmax."),
        },
        outputs={
            "output": Tensor(query, "bfloat16", "Attention output."),
            "lse": Tensor((*rows, "num_qo_heads"), lse.dtype, lse.description),
        },
        constraints=("kv_len >= 1",),
        reference=reference_text("gqa_single", f"gqa_single_{stage}"),
        captured_from=LLAMA,
        captured_op_type="gqa_ragged",
        kept_axes=None if rows else ("total_kv",),
        structure=one_sequence,
        fits=one_fits,
        traffic=traffic,
        sm_scale=1 / math.sqrt(dim),
    )
