"""Audit sizes of one sequence's attention, and the ranges of its random cases."""

from __future__ import annotations

from generator.ops.attention.audit import LONGEST, fewer_heads, scaled
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

tiny = fewer_heads


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return other numbers of queries and keys, and another scale."""
    axes = {"kv_len": draw.child("kv").integers(1, LONGEST, 1)[0]}
    if "q_len" in case.axes:
        axes["q_len"] = draw.child("q").integers(1, LONGEST // 2, 1)[0]
    return axes, scaled(case, draw, other)
