"""Attention within chunks of the positions: prefill over contiguous keys and values."""

from __future__ import annotations

import math
from dataclasses import dataclass

from generator.ops.attention import paged_family as paged
from generator.ops.attention import ragged_family as ragged
from generator.ops.attention import workloads
from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text

LLAMA = "gqa_ragged_prefill_causal_h32_kv8_d128"
HEAD_DIM = 128
CHUNK = 8192
# three of four layers of these models
MODELS = ("llama-4-scout", "llama-4-maverick")


@dataclass(frozen=True)
class ChunkedHeads:
    """The constants of one definition."""

    num_qo_heads: int
    num_kv_heads: int
    tp: int


HEADS = (ChunkedHeads(40, 8, 1), ChunkedHeads(5, 1, 8))


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(chunked_spec(heads) for heads in HEADS)


def chunked_spec(heads: ChunkedHeads) -> Spec:
    """Return the definition for one set of constants."""
    qo, kv = heads.num_qo_heads, heads.num_kv_heads
    return Spec(
        name=f"chunked_attention_prefill_c{CHUNK}_h{qo}_kv{kv}_d{HEAD_DIM}",
        description=(
            "Grouped-query attention within chunks, prefill over contiguous keys and"
            f" values: {qo} query heads share {kv} KV heads. Positions are cut into"
            f" chunks of {CHUNK}. Query i of q_len stands at position p = kv_len - q_len"
            f" + i and sees the keys of p's chunk up to p, {CHUNK} * (p // {CHUNK}) ..."
            " p. A query that sees no key gives output 0 and lse -inf. lse is base 2."
        ),
        op_type="chunked_attention",
        tags=(
            "stage:prefill",
            *(f"model:{model}" for model in MODELS),
            ragged.FI_API,
            f"tp:{heads.tp}",
        ),
        axes={
            "num_qo_heads": Axis("Query heads.", qo),
            "num_kv_heads": Axis("Key and value heads.", kv),
            "head_dim": Axis("Length of a head.", HEAD_DIM),
            **ragged.VAR_AXES,
        },
        inputs=ragged.inputs("head_dim", "head_dim"),
        outputs={
            "output": Tensor(
                ("total_q", "num_qo_heads", "head_dim"), "bfloat16", "Attention output."
            ),
            "lse": paged.lse_output("total_q"),
        },
        constraints=ragged.CONSTRAINTS,
        reference=reference_text(
            "chunked_attention",
            "chunked_attention_prefill",
            ATTENTION_CHUNK_SIZE=CHUNK,
        ),
        captured_from=LLAMA,
        captured_op_type="gqa_ragged",
        structure=workloads.ragged,
        fits=workloads.ragged_fits,
        traffic=workloads.traffic,
        sm_scale=1 / math.sqrt(HEAD_DIM),
    )
