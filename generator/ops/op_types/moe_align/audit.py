"""Ranges of the random cases of routings in audits."""

from __future__ import annotations

from generator.ops.op_types.moe_align.op import axes_of
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return one to forty tokens, whose experts are drawn as the case's."""
    return axes_of(definition, draw.integers(1, 41, 1)[0]), dict(case.params)
