"""Audit sizes of adapters, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return few features and a low rank."""
    wide = {"in_features": 192, "out_features": 96}
    return {"rank": 8, **{name: n for name, n in wide.items() if name in axes}}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return one to twelve rows and one to five adapters."""
    rows = draw.child("rows").integers(1, 13, 1)[0]
    adapters = draw.child("adapters").integers(1, 6, 1)[0]
    return {"num_tokens": rows, "num_adapters": adapters}, dict(case.params)
