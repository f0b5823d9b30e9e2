"""Audit sizes of heads, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return few heads; their length, and so the sections, stay."""
    return {"num_heads": 3}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return grids of one to nine places along each axis."""
    sizes = {axis: draw.child(axis).integers(1, 10, 1)[0] for axis in case.axes}
    return sizes, dict(case.params)
