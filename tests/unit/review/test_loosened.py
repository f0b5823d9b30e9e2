"""What a changed definition asks less of: constraints, inputs, outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from generator.dataset.definition import LoadedDefinition, LoadedTensor
from generator.review.change import Change
from generator.review.loosened import loosened
from generator.rules.load import load_definitions
from tests.builders import ROOT

NAME = "gqa_paged_decode_h32_kv8_d128_ps64"
(PAGED,) = load_definitions(ROOT, names=[NAME]).definitions
FIRST, SECOND = PAGED.constraints


def messages(old: LoadedDefinition, new: LoadedDefinition) -> list[str]:
    """Return what a change asks less of, in words."""
    key = old.op_type, old.name
    change = Change("changed", key, old.path, old.path, old, new, (), None)
    problems = list(loosened([change]))
    assert {problem.rule for problem in problems} <= {"review-weaker"}
    return [problem.message for problem in problems]


def changed(group: str, name: str, **fields: Any) -> LoadedDefinition:
    """Return the definition with other fields of one input or output."""
    tensors: Mapping[str, LoadedTensor] = getattr(PAGED, group)
    return replace(
        PAGED, **{group: {**tensors, name: replace(tensors[name], **fields)}}
    )


@pytest.mark.parametrize(
    ("constraints", "gone"),
    [
        ([SECOND], [FIRST]),
        ([], [FIRST, SECOND]),
        ([SECOND, FIRST.replace("==", ">=")], [FIRST]),
        # layout, order, and a further one
        ([f" ({SECOND.replace(' ', '')})", FIRST], []),
        ([FIRST, SECOND, "batch_size >= 1"], []),
    ],
)
def test_a_constraint_that_is_gone(constraints: list[str], gone: list[str]) -> None:
    new = replace(PAGED, constraints=tuple(constraints))
    assert messages(PAGED, new) == [
        f"No workload is held to {constraint!r} any more." for constraint in gone
    ]


def test_an_input_that_may_be_left_out() -> None:
    new = changed("inputs", "sm_scale", optional=True)
    (message,) = messages(PAGED, new)
    assert message == "Workloads may leave out 'sm_scale', which they had to have."
    assert messages(new, PAGED) == []


def test_an_output_that_is_gone_and_one_of_a_coarser_dtype() -> None:
    outputs = {name: PAGED.outputs[name] for name in PAGED.outputs if name != "lse"}
    (message,) = messages(PAGED, replace(PAGED, outputs=outputs))
    assert message == "The output 'lse' is gone: nothing compares it."
    coarser = changed("outputs", "lse", dtype="bfloat16")
    (message,) = messages(PAGED, coarser)
    assert message.startswith("The output 'lse' may be as far off as bfloat16 is")
    assert messages(coarser, PAGED) == []
