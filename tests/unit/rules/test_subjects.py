"""A definition in memory is the same subject as in its rendered file."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from generator.ops.registry import op_packages
from generator.rules.load import load_definitions
from generator.rules.subjects import subject_of
from generator.running.rendered import load_rendered
from kernel_judge.comparison.tolerance import Override
from kernel_judge.subject import Op, Subject
from tests.builders import ROOT


def text_of(function: Callable[..., Any] | None) -> str | None:
    return None if function is None else inspect.getsource(function)


def values_of(override: Override) -> dict[str, Any]:
    values = {f.name: getattr(override, f.name) for f in fields(Override)}
    # the rendered file has a copy of each function
    functions = {"where": override.where, "growth": override.growth}
    return values | {name: text_of(function) for name, function in functions.items()}


def assert_same_op(mine: Op, rendered: Op) -> None:
    for field in fields(Op):
        first, second = getattr(mine, field.name), getattr(rendered, field.name)
        if field.name == "kernels":
            assert first.keys() == second.keys()
            for name, kernel in first.items():
                assert text_of(kernel.backends) == text_of(second[name].backends)
                assert text_of(kernel.call) == text_of(second[name].call)
        elif field.name == "tolerances":
            assert [values_of(o) for o in first] == [values_of(o) for o in second]
        elif callable(first) or callable(second):
            assert text_of(first) == text_of(second), field.name
        elif field.name != "policies":
            assert first == second, field.name
    assert mine.policies.keys() == rendered.policies.keys()


@pytest.mark.parametrize("op_type", sorted(op_packages()))
def test_a_rendered_subject_is_that_of_its_definition(op_type: str) -> None:
    file = load_rendered(ROOT / f"tests/references/test_{op_type}.py")
    rendered = {subject.name: subject for subject in file}
    definitions = load_definitions(ROOT, op_types=[op_type]).definitions
    assert sorted(rendered) == sorted(d.name for d in definitions)
    plain = [f.name for f in fields(Subject) if f.name not in ("op", "reference")]
    for definition in definitions:
        mine, other = subject_of(definition), rendered[definition.name]
        assert {n: getattr(mine, n) for n in plain} == {
            n: getattr(other, n) for n in plain
        }
        assert_same_op(mine.op, other.op)


def test_axes_and_tolerance_are_replaced() -> None:
    (definition,) = load_definitions(ROOT, names=["rmsnorm_h512"]).definitions
    subject = subject_of(definition, {"hidden_size": 16}, 0.5)
    assert subject.definition.axes == {"hidden_size": 16}
    (case,) = (c for c in subject.cases() if c.name == "one-row")
    assert subject.tolerance("output", "oracle", case).rtol == 0.5
    assert subject_of(definition).definition.axes == {"hidden_size": 512}
