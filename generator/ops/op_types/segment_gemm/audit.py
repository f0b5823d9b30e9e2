"""Audit sizes of products of segments, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.op_types.segment_gemm.segments import axes_of
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return fewer terms and fewer columns."""
    return {"K": 256, "N": 96}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return up to six segments of up to seven rows, and one of a row; up to five weights."""
    lengths = tuple(draw.integers(0, 8, draw.child("count").integers(1, 7, 1)[0]))
    weights = draw.child("weights").integers(1, 6, 1)[0]
    # a case without rows shows nothing
    lengths = (*lengths, 1)
    return axes_of(lengths, weights), {"lengths": lengths}
