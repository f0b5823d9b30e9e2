"""Audit sizes of vocabularies, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation, varied_rows
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return few tokens; more than float32 or bfloat16 rows have distinct values."""
    return {"vocab_size": 5000}


def tiny(axes: Axes) -> Axes:
    """Return fewer tokens."""
    return {"vocab_size": 300}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return other rows; the kinds of rows of a case stay."""
    return varied_rows(definition, case, draw, other)
