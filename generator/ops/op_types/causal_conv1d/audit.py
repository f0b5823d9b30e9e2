"""Audit sizes of convolutions, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

_LONGEST = 7


def reduced(axes: Axes) -> Axes:
    """Return few channels: each is for itself."""
    return {"dim": 160}


def tiny(axes: Axes) -> Axes:
    """Return fewer channels."""
    return {"dim": 24}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return other lengths of sequences, or other rows of a batch."""
    if "lengths" not in case.params:
        rows = draw.integers(1, 5, 1)[0]
        params = {**case.params, "padding": tuple(range(1, rows, 3))}
        return {"batch_size": rows, "num_slots": rows + 2}, params
    lengths = draw.integers(1, _LONGEST, draw.integers(1, 4, 1)[0])
    fresh = tuple(n for n in range(len(lengths)) if n % 2 == draw.integers(0, 2, 1)[0])
    axes = {
        "total_tokens": sum(lengths),
        "num_seqs": len(lengths),
        "len_cu_seqlens": len(lengths) + 1,
        "num_slots": len(lengths) + 2,
    }
    return axes, {**case.params, "lengths": tuple(lengths), "fresh": fresh}
