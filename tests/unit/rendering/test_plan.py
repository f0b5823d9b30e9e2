"""What a rendered file will contain: unique names, shared interfaces, the unresolved."""

from __future__ import annotations

import ast
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.dataset.definition import LoadedTensor
from generator.ops.registry import op_specs
from generator.rendering.plan import RenderOptions, plan_tests
from generator.rendering.render import render_test_file
from tests.builders import ROOT, definition_value, loaded

RUN = "def run(x):\n    return x + x\n"


def plan(*definitions, op_type="twice", options=None):
    return plan_tests(op_type, definitions, options or RenderOptions())


def named(*names):
    return [definition_value(RUN, name=name) for name in names]


def class_names(*names):
    return [c.class_name for c in plan(*named(*names)).classes]


@pytest.mark.parametrize(
    "names",
    [
        ("a_b", "a_B"),
        ("a_b", "aB"),
        ("A_b", "a_b", "A_B", "aB"),
        ("a", "a_2", "A", "a_"),
        ("a", "A", "a_2"),
        ("_a", "a", "__a"),
    ],
)
def test_class_names_are_unique_where_names_differ_by_little(names):
    found = class_names(*names)
    assert len(set(found)) == len(names)
    assert all(name.isidentifier() and name.startswith("Test") for name in found)


identifiers = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True)


@given(st.sets(identifiers, min_size=1, max_size=8))
def test_class_names_are_always_unique_and_in_the_order_of_the_names(names):
    planned = plan(*named(*names)).classes
    assert len({c.class_name for c in planned}) == len(names)
    assert [c.definition.name for c in planned] == sorted(names)


def test_a_plan_does_not_depend_on_the_order_of_its_definitions():
    definitions = named("b", "a", "A")
    assert plan(*definitions) == plan(*reversed(definitions))


def test_equal_references_and_interfaces_are_held_once():
    other = definition_value("def run(x):\n    return 2 * x\n", name="c")
    wider = replace(
        definition_value(RUN, name="d"),
        inputs={"x": LoadedTensor("x", ("M",), "float32")},
    )
    planned = plan(*named("a", "b"), other, wider)
    assert [r.definitions for r in planned.references] == [("a", "b", "d"), ("c",)]
    assert [c.reference for c in planned.classes] == [
        "reference_a",
        "reference_a",
        "reference_c",
        "reference_a",
    ]
    assert [c.interface for c in planned.classes] == [
        "INTERFACE_A",
        "INTERFACE_A",
        "INTERFACE_A",
        "INTERFACE_D",
    ]


def test_inputs_in_another_order_are_another_interface():
    x, w = LoadedTensor("x", ("M",), "float32"), LoadedTensor("w", ("M",), "float32")
    first = definition_value(RUN, name="a", inputs={"x": x, "w": w})
    second = definition_value(RUN, name="b", inputs={"w": w, "x": x})
    assert len(plan(first, second).interfaces) == 2


def test_declarations_tell_scalars_from_tensors_without_axes():
    inputs = {
        "x": LoadedTensor("x", ("M", "N"), "bfloat16"),
        "scale": LoadedTensor("scale", None, "float32"),
        "total": LoadedTensor("total", (), "int32"),
    }
    (interface,) = plan(definition_value(RUN, inputs=inputs)).interfaces
    assert dict(interface.inputs) == {
        "x": "bfloat16[M, N]",
        "scale": "float32",
        "total": "int32[]",
    }


def test_an_op_type_without_a_module_is_unresolved_with_the_reason():
    planned = plan(*named("a"))
    assert planned.op is None
    assert planned.classes[0].unresolved == "no op module for twice"
    text = render_test_file(planned)
    assert 'unresolved = "no op module for twice"' in text
    assert "class TwiceTests(ReferenceTests):" in text


def test_a_constant_that_nobody_knows_leaves_its_definition_unresolved():
    silent = replace(loaded("rmsnorm_h128"), tags=(), reference=RUN)
    planned = plan(silent, op_type="rmsnorm")
    assert planned.classes[0].unresolved == "no source knows eps"
    assert [p.rule for p in planned.problems] == ["constant-not-independent"]


def test_a_constant_of_the_reference_is_marked_as_dependent():
    planned = plan(replace(loaded("rmsnorm_h128"), tags=()), op_type="rmsnorm")
    (planned_class,) = planned.classes
    assert planned_class.dependent_constants == ("eps",)
    assert planned_class.unresolved is None
    assert 'dependent_constants = ("eps",)' in render_test_file(planned)


def test_the_options_are_in_the_file():
    text = render_test_file(plan(*named("a"), options=RenderOptions(("small",), 1e-4)))
    assert 'sizes = ("small",)' in text
    assert "run_tolerance = 0.0001" in text
    assert "sets every atol and rtol to 0.0001 (--tolerance)" in text
    assert "run_tolerance" not in render_test_file(plan(*named("a")))


@pytest.mark.parametrize("op_type", op_specs())
def test_an_ops_source_is_in_the_file_once_and_its_value_in_the_base_class(op_type):
    name = min((ROOT / "definitions" / op_type).glob("*.json")).stem
    planned = plan(loaded(name), op_type=op_type)
    text = render_test_file(planned)
    assert text.count(planned.op.body) == 1
    assert "    op = OP\n" in text
    defined = [n.name for n in ast.parse(text).body if hasattr(n, "name")]
    assert len(set(defined)) == len(defined)


def test_work_grows_as_the_definitions_do():
    """Counted in calls of functions, since times depend on the machine."""

    def calls(count):
        definitions = named(*(f"twice_n{number}" for number in range(count)))
        seen = 0

        def count_it(frame, event, argument):
            nonlocal seen
            seen += event in ("call", "c_call")

        sys.setprofile(count_it)
        try:
            plan(*definitions)
        finally:
            sys.setprofile(None)
        return seen

    calls(2)
    assert calls(400) < 2.2 * calls(200)
