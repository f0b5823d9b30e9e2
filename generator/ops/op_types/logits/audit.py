"""Audit sizes of vocabularies, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation, varied_rows
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return few tokens, as many as a packed mask has bits in whole words."""
    return {"vocab_size": 1056, **({"num_words": 33} if "num_words" in axes else {})}


def tiny(axes: Axes) -> Axes:
    """Return fewer tokens."""
    return {"vocab_size": 320, **({"num_words": 10} if "num_words" in axes else {})}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return other rows; what makes a case's rows special stays."""
    return varied_rows(definition, case, draw, other)
