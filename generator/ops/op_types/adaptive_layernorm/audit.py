"""Audit sizes of rows, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return short rows."""
    return {"hidden_size": 320}


def tiny(axes: Axes) -> Axes:
    """Return shorter rows."""
    return {"hidden_size": 96}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return one to three images of one to six patches, of the case's deviation."""
    images, patches = draw.integers(1, 4, 1)[0], draw.child("seq").integers(1, 7, 1)[0]
    return {"batch_size": images, "seq_len": patches}, dict(case.params)
