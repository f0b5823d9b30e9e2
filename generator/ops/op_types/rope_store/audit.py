"""Smaller heads for audits, and what varies in their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return few short heads, of which a part turns where a part did."""
    partly = axes["rotary_dim"] < axes["head_size"]
    return {
        "num_qo_heads": 4,
        "num_kv_heads": 2,
        "head_size": 32,
        "rotary_dim": 16 if partly else 32,
    }


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return one to eight tokens of a cache with as many slots or more."""
    tokens = draw.integers(1, 9, 1)[0]
    axes = {
        "num_tokens": tokens,
        "max_seq_len": draw.integers(1, 60, 1)[0],
        "num_slots": tokens + draw.integers(1, 9, 1)[0],
    }
    return axes, dict(case.params)
