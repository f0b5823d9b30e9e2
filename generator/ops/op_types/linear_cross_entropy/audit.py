"""Audit sizes of vocabularies, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation, varied_rows
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return few tokens and short rows."""
    return {"vocab_size": 700, "hidden_size": 96}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return other rows of a case's kind."""
    return varied_rows(definition, case, draw, other)
