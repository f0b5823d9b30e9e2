"""Audit sizes of heads, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation, varied_rows
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return few short heads."""
    return {"num_qo_heads": 6, "num_kv_heads": 2, "head_dim": 32, "half_dim": 16}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return other tokens."""
    return varied_rows(definition, case, draw, other)
