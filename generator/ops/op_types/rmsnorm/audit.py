"""Audit sizes of norms, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation, varied_rows
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def tiny(axes: Axes) -> Axes:
    """Return shorter rows."""
    return {"hidden_size": 160}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return other rows of a deviation of their own; the other cases stay as they are."""
    if "std" not in case.params:
        return dict(case.axes), dict(case.params)
    return varied_rows(definition, case, draw, other)
