"""Audit sizes of vocabularies, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return more tokens than any case keeps."""
    return {"vocab_size": 1100}


def tiny(axes: Axes) -> Axes:
    """Return fewer tokens; what asks for more keeps all."""
    return {"vocab_size": 600}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return the case's rows in another order, with settings of other rows."""
    rows = case.params["rows"]
    order = draw.permutation(len(rows)).tolist()
    return dict(case.axes), {"rows": tuple(rows[place] for place in order)}
