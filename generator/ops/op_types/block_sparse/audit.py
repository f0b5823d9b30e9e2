"""Audit sizes of attention over blocks, and the ranges of its random cases."""

from __future__ import annotations

from generator.ops.attention.audit import LONGEST, fewer_heads, scaled
from generator.ops.axes import Axes
from generator.ops.op_types.block_sparse.inputs import causal_blocks
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def tiny(axes: Axes) -> Axes:
    """Return few, short heads, and blocks of fewer keys than a row has queries."""
    shorter = {"block_rows": 7, "block_columns": 8}
    return {**fewer_heads(axes), **shorter}


# numbers of blocks are limits, their sizes and heads are none
for_limits = tiny


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return other blocks, other lengths, and another scale."""
    params = scaled(case, draw, other)
    rows = draw.integers(1, 5, 1)[0]
    columns = draw.child("columns").integers(1, 6, 1)[0]
    axes = {"num_block_rows": rows, "num_block_columns": columns}
    if "q_len" in case.axes:
        lengths = draw.child("lengths").integers(6, LONGEST, 2)
        return {**axes, **dict(zip(("q_len", "kv_len"), lengths, strict=True))}, params
    axes["len_indptr"] = rows + 1
    if "positions" in params:
        length = definition.axes["block_columns"]
        places = draw.child("positions").integers(0, columns * length, rows)
        blocks = causal_blocks(tuple(places), length)
        return {**axes, "num_blocks": blocks}, {**params, "positions": tuple(places)}
    counts = draw.child("counts").integers(0, columns + 1, rows)
    counts[0] = max(counts[0], 1)
    return {**axes, "num_blocks": sum(counts)}, {**params, "counts": tuple(counts)}
