"""Audit sizes of heads, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return few heads; their length, and so the scale, stays."""
    return {"num_heads": 3}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return one to three sequences of one to sixty queries and keys."""
    sizes = {
        axis: draw.child(axis).integers(1, 4 if axis == "batch_size" else 60, 1)[0]
        for axis in case.axes
    }
    return sizes, dict(case.params)
