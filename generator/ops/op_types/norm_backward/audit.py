"""Audit sizes of gradients of norms, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation, varied_rows
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return short rows."""
    return {"hidden_size": 320}


def tiny(axes: Axes) -> Axes:
    """Return shorter rows."""
    return {"hidden_size": 96}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return other rows, of the case's deviation."""
    return varied_rows(definition, case, draw, other)
