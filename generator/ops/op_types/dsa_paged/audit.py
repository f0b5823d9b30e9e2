"""Audit sizes of sparse attention, and the ranges of its random cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from generator.ops.attention.audit import LONGEST, scaled
from generator.ops.axes import Axes
from generator.ops.paging import SPARE_PAGES, page_counts
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def tiny(axes: Axes) -> Axes:
    """Return few heads and short vectors."""
    if "index_head_dim" in axes:
        scale = axes["head_dim_with_scale"] - axes["index_head_dim"]
        length = {"index_head_dim": 32, "head_dim_with_scale": 32 + scale}
        return {"num_index_heads": 4, **length}
    heads = {"num_qo_heads": 3, "num_index_heads": 4}
    return {**heads, "head_dim_ckv": 64, "head_dim_kpe": 16}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return sequences of other lengths for the indexer, another scale for attention."""
    if "seq_lens" not in case.params:
        return dict(case.axes), scaled(case, draw, other)
    lens = _lengths_around(case.params, definition.axes["topk"], draw)
    return _axes_of_table(lens, definition.axes), {**case.params, "seq_lens": lens}


def _lengths_around(
    params: Mapping[str, Any], topk: int, draw: Stream
) -> tuple[int, ...]:
    """Return lengths of a few sequences: short, or about k where a case has such."""
    if max(params["seq_lens"]) < topk // 2:
        return tuple(draw.integers(0, 3 * LONGEST, draw.integers(1, 5, 1)[0]))
    near = draw.integers(-LONGEST, LONGEST, draw.integers(1, 3, 1)[0])
    return tuple(max(topk + more, 0) for more in near)


def _axes_of_table(lens: Sequence[int], axes: Mapping[str, int]) -> dict[str, int]:
    counts, page_size = page_counts(lens, axes["page_size"]), axes["page_size"]
    return {
        "batch_size": len(lens),
        # a column more than any sequence needs, and room for k tokens
        "max_num_pages": max(*counts, -(-axes["topk"] // page_size)) + 1,
        "num_pages": sum(counts) + SPARE_PAGES,
    }
