"""Audit sizes of random cases of losses, and the ranges of its random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation, varied_rows
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def tiny(axes: Axes) -> Axes:
    """Return few tokens of the vocabulary: workloads have labels of all of them."""
    return {"vocab_size": 300}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return other rows of a case's kind."""
    return varied_rows(definition, case, draw, other)
