"""Audit sizes of prefills, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

_LONGEST = 7


def reduced(axes: Axes) -> Axes:
    """Return few groups of as many heads; the bounds are for a dstate of 128."""
    ratio = axes["nheads"] // axes["ngroups"]
    return {"nheads": 2 * ratio, "ngroups": 2, "head_dim": 16}


def tiny(axes: Axes) -> Axes:
    """Return few heads and short states."""
    return {"nheads": 4, "ngroups": 2, "head_dim": 8, "dstate": 16}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return other lengths of sequences."""
    lengths = draw.integers(1, _LONGEST, draw.integers(1, 4, 1)[0])
    axes = {
        "total_tokens": sum(lengths),
        "num_seqs": len(lengths),
        "len_cu_seqlens": len(lengths) + 1,
    }
    return axes, {**case.params, "lengths": tuple(lengths)}
