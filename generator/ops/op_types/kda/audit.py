"""Audit sizes of delta nets, and the ranges of its random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

# lengths of sequences: a step takes as long as all of an attention's keys
_SHORTEST = 9


def reduced(axes: Axes) -> Axes:
    """Return few heads, and short ones."""
    return {"num_heads": 3, "head_dim": 32}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return other lengths of sequences, or other rows of a batch."""
    if "lengths" not in case.params:
        return {"batch_size": draw.integers(1, 5, 1)[0]}, dict(case.params)
    lengths = draw.integers(0, _SHORTEST, draw.integers(1, 4, 1)[0])
    lengths[0] = max(lengths[0], 1)
    axes = {
        "total_tokens": sum(lengths),
        "num_seqs": len(lengths),
        "len_cu_seqlens": len(lengths) + 1,
    }
    return axes, {**case.params, "lengths": tuple(lengths)}
