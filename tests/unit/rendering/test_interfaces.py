"""Interfaces in a rendered file: what is printed gives every interface again."""

from __future__ import annotations

from itertools import permutations

import pytest

from generator.ops.registry import op_specs
from generator.rendering.interfaces import PrintedInterface, printed
from generator.rendering.plan import RenderOptions, SharedInterface, plan_tests
from generator.rules.load import load_definitions
from kernel_judge.definition import Interface
from tests.builders import ROOT

TENSORS = {"q": "float32[n]", "k": "float32[m]", "scale": "float32"}


def interface(name: str, inputs: dict[str, str], *constraints: str) -> SharedInterface:
    return SharedInterface(name, inputs, {"out": "float32[n]"}, constraints, ())


def read(all_printed: list[PrintedInterface]) -> dict[str, Interface]:
    """Return the interfaces that printed ones give when they are executed."""
    result: dict[str, Interface] = {}
    for p in all_printed:
        if p.base is None:
            result[p.name] = Interface(p.inputs, p.outputs, p.constraints or ())
        else:
            result[p.name] = result[p.base].but(
                inputs=p.inputs,
                outputs=p.outputs,
                constraints=p.constraints,
                also=p.also,
                without=p.without,
            )
    return result


@pytest.mark.parametrize("op_type", op_specs())
def test_every_interface_is_what_is_printed_of_it(op_type: str) -> None:
    definitions = load_definitions(ROOT, op_types=[op_type]).definitions
    plan = plan_tests(op_type, definitions, RenderOptions())
    result = read([*printed(plan.interfaces)])
    for wanted in plan.interfaces:
        has = result[wanted.name]
        assert [*has.inputs.items()] == [*wanted.inputs.items()]
        assert [*has.outputs.items()] == [*wanted.outputs.items()]
        assert has.constraints == wanted.constraints


def test_a_new_input_follows_the_one_before_it() -> None:
    longer = {**TENSORS, "a": "int32", "b": "int32", "c": "int32", "d": "int32"}
    with_sinks = {"q": longer["q"], "sinks": "float32[h]", **longer}
    base, change = printed([interface("A", longer), interface("B", with_sinks)])
    assert base.base is None
    assert change.base == "A"
    assert change.inputs == {"q": "float32[n]", "sinks": "float32[h]"}
    assert (change.outputs, change.constraints, change.without) == ({}, None, ())


@pytest.mark.parametrize("names", [*permutations(TENSORS)][1:])
def test_another_order_is_printed_whole(names: tuple[str, ...]) -> None:
    other = {name: TENSORS[name] for name in names}
    _, second = printed([interface("A", TENSORS), interface("B", other)])
    assert second.base is None


def test_an_interface_without_the_constraints_of_its_base_says_so() -> None:
    longer = {**TENSORS, "a": "int32", "b": "int32"}
    shorter = {name: longer[name] for name in longer if name != "k"}
    _, second = printed([interface("A", longer, "n > 1"), interface("B", shorter)])
    assert (second.base, second.constraints, second.without) == ("A", (), ("k",))


def test_constraints_behind_those_of_the_base_stand_alone() -> None:
    longer = {**TENSORS, "a": "int32", "b": "int32", "c": "int32"}
    other = {**longer, "scale": "float32[n]"}
    _, second = printed(
        [interface("A", longer, "n > 1"), interface("B", other, "n > 1", "m > 1")]
    )
    assert (second.base, second.constraints, second.also) == ("A", None, ("m > 1",))


def test_a_tensor_can_be_new_at_the_front() -> None:
    base = Interface({"q": "float32"}, {"out": "float32"})
    assert [*base.but(inputs={"p": "int32"}).inputs] == ["p", "q"]
    assert [*base.but(inputs={"q": "int32", "r": "int32"}).inputs] == ["q", "r"]
    assert base.but(without=("q",)).inputs == {}
