"""Audit sizes of attention, and the ranges of its random cases."""

from __future__ import annotations

from typing import Any

from generator.ops.attention.variant import variant_of
from generator.ops.axes import Axes
from generator.ops.paging import SPARE_PAGES, page_counts
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

# lengths up to a little more than two blocks of 32
LONGEST = 70


def fewer_heads(axes: Axes) -> Axes:
    """Return few heads of the same ratio, and short ones."""
    ratio = axes["num_qo_heads"] // axes["num_kv_heads"]
    heads = min(axes["num_kv_heads"], 2)
    return {"num_qo_heads": heads * ratio, "num_kv_heads": heads, "head_dim": 32}


def fewer_latent(axes: Axes) -> Axes:
    """Return few heads, and short vectors of a compressed cache."""
    return {"num_qo_heads": 4, "head_dim_ckv": 64, "head_dim_kpe": 16}


def varied_sequences(
    definition: Definition, case: Case, draw: Stream, other: bool
) -> Variation:
    """Return one to four sequences of other lengths, and another scale."""
    params = scaled(case, draw, other)
    # keys before a sliding window too
    longest = LONGEST + max(variant_of(definition).window_left, 0)
    params, lengths = _with_lengths(params, draw, longest)
    return axes_of(params, lengths, definition.axes.get("page_size", 1)), params


def scaled(case: Case, draw: Stream, other: bool) -> dict[str, Any]:
    """Return a case's parameters; in other rounds with a scale of their own.

    Most cases have the usual scale, which a reference may make itself.
    """
    if not other:
        return dict(case.params)
    return {**case.params, "scale": draw.child("scale").integers(4, 8, 1)[0] / 8.0}


def _with_lengths(
    params: dict[str, Any], draw: Stream, longest: int
) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """Return parameters with other lengths, and those: pairs of queries and keys."""
    sequences = draw.integers(1, 5, 1)[0]
    keys = draw.child("kv").integers(0, longest, sequences)
    if set(params["q_lens"]) == {1}:
        queries = [1] * sequences
    else:
        queries = draw.child("q").integers(0, LONGEST // 2, sequences)
        queries[0] = max(queries[0], 1)
    lengths = list(zip(queries, keys, strict=True))
    return {**params, "q_lens": tuple(queries), "kv_lens": tuple(keys)}, lengths


def axes_of(
    params: dict[str, Any], lengths: list[tuple[int, int]], page_size: int
) -> dict[str, int]:
    """Return the axes of sequences, pairs of queries and keys, in whatever layout."""
    pages = sum(page_counts(params["kv_lens"], page_size))
    return {
        "batch_size": len(lengths),
        "len_indptr": len(lengths) + 1,
        "total_q": sum(q for q, _ in lengths),
        "total_kv": sum(kv for _, kv in lengths),
        "num_kv_indices": pages,
        "num_pages": pages + SPARE_PAGES,
        "mask_len": sum(q * kv for q, kv in lengths),
    }
