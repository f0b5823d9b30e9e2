"""Audit sizes of attention of training, and the ranges of its random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return two heads of keys, each with as many of queries as it had."""
    return _heads(axes, 24)


def tiny(axes: Axes) -> Axes:
    """Return shorter heads."""
    return _heads(axes, 8)


def _heads(axes: Axes, dim: int) -> Axes:
    each = axes["num_qo_heads"] // axes["num_kv_heads"]
    return {"num_qo_heads": 2 * each, "num_kv_heads": 2, "head_dim": dim}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return one to three sequences of two to twelve tokens."""
    batch, length = draw.integers(1, 4, 1)[0], draw.integers(2, 13, 1)[0]
    return {"batch_size": batch, "seq_len": length}, dict(case.params)
