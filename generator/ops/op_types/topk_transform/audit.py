"""Audit sizes of k, and the ranges of its random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.op_types.topk_transform.scores import score_case
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return rows of other lengths, about k or below."""
    k, count = definition.axes["k"], draw.integers(1, 5, 1)[0]
    lengths = draw.child("lengths").integers(0, 2 * k, count)
    varied_case = score_case(
        definition, case.name, case.size, tuple(lengths), case.params["kind"]
    )
    return dict(varied_case.axes), dict(varied_case.params)


def tiny(axes: Axes) -> Axes:
    """Return no other axes: k stands in the reference."""
    return {}
