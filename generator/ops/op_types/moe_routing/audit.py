"""Ranges of routing's random cases in audits."""

from __future__ import annotations

from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return one to eight tokens, and where settings may differ, another factor."""
    params = dict(case.params)
    if other:
        params["factor"] = draw.child("factor").integers(4, 13, 1)[0] / 4.0
    return {**case.axes, "num_tokens": draw.integers(1, 9, 1)[0]}, params
