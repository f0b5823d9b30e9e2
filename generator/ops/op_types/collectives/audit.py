"""Audit sizes of exchanged rows, and the ranges of its random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

_SHARE = 20


def tiny(axes: Axes) -> Axes:
    """Return shorter rows of as many ranks."""
    if "shard_size" in axes:
        return {"shard_size": _SHARE, "hidden_size": _SHARE * axes["world_size"]}
    return {"hidden_size": 160}


for_limits = tiny


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return one to eight rows, of each rank where they are dealt out."""
    rows = draw.integers(1, 9, 1)[0]
    axes = {"num_tokens": rows}
    if "tokens_per_rank" in case.axes:
        ranks = definition.axes["world_size"]
        axes = {"num_tokens": ranks * rows, "tokens_per_rank": rows}
    return axes, dict(case.params)
