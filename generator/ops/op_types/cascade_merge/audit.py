"""Audit sizes of merging, and the ranges of its random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return few heads: each is for itself."""
    return {"num_heads": 8}


def tiny(axes: Axes) -> Axes:
    """Return fewer, shorter heads."""
    return {"num_heads": 3, "head_dim": 32}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return one to eight queries of two to five parts."""
    axes = {"seq_len": draw.integers(1, 9, 1)[0]}
    if "num_states" in case.axes:
        axes["num_states"] = draw.child("parts").integers(2, 6, 1)[0]
    return axes, dict(case.params)
