"""Audit sizes of products, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation, varied_rows
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return three groups of 128, and few columns."""
    return {"N": 48, "K": 384, "half_k": 192, "num_groups": 3}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return other rows."""
    return varied_rows(definition, case, draw, other)
