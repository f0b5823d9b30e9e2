"""Shorter rows for audits, and what varies in their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.op_types.moe_exchange.op import axes_of
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return shorter rows of as many ranks."""
    return {"hidden_size": 24}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return one to five tokens of a rank."""
    tokens = draw.integers(1, 6, 1)[0]
    return axes_of(definition.axes["world_size"], tokens), dict(case.params)
