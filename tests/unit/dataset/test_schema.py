"""The schemas, what another library makes of them, and the sentences about errors."""

from __future__ import annotations

import copy
import json
import time
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.validators import extend

from generator.dataset.schema import Kind, check, checked_definition, load_schema
from generator.problems import MAX_PROBLEMS

KINDS: tuple[Kind, ...] = ("definition", "workload", "solution", "trace")

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(
        ["const", "var", "random", "scalar", "bfloat16", "M", "x\n", 4096.0]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text() | st.sampled_from(["type", "value", "shape", "dtype", "M"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    places = [path]
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, child in items:
        places += _places(child, (*path, key))
    return places


@st.composite
def mutated(draw: st.DrawFn, kind: Kind) -> Any:
    """Draw the schema's example with a few places replaced, removed or added."""
    value = copy.deepcopy(load_schema(kind)["examples"][0])
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.sampled_from(_places(value)))
        if not path:
            continue
        parent = value
        for key in path[:-1]:
            parent = parent[key]
        action = draw(st.sampled_from(["replace", "remove", "add"]))
        if action == "replace":
            parent[path[-1]] = draw(JSON_VALUES)
        elif action == "remove":
            del parent[path[-1]]
        elif isinstance(parent, dict):
            parent[draw(st.text())] = draw(JSON_VALUES)
    return value


@pytest.mark.parametrize("kind", KINDS)
def test_schema_is_a_schema_and_its_examples_fit(kind: Kind) -> None:
    schema = load_schema(kind)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"].endswith("draft/2020-12/schema")
    assert schema["$id"] == f"urn:gen-tests:schema:{kind}"
    for example in schema["examples"]:
        assert check(example, kind, "x.json") == ()
        Draft202012Validator(schema).validate(example)


def test_trace_and_workload_agree_on_a_workload() -> None:
    trace, line = load_schema("trace"), load_schema("workload")
    for part in ("identifier", "input", "workload"):
        assert trace["$defs"][part] == line["$defs"][part]


@cache
def _strict(kind: Kind) -> Any:
    """Return another library's judge: `$` is the end, and 4096.0 is no integer."""
    types = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda checker, value: type(value) is int
    )
    text = json.dumps(load_schema(kind)).replace('*$"', '*\\\\Z"')
    make: Any = extend  # the stubs leave it untyped
    return make(Draft202012Validator, type_checker=types)(json.loads(text))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_both_libraries_agree(kind: Kind, data: st.DataObject) -> None:
    value = data.draw(mutated(kind) | JSON_VALUES)
    problems = check(value, kind, "x\n.json")
    assert bool(problems) != _strict(kind).is_valid(value)
    for problem in problems:
        assert str(problem).isprintable()
        assert len(problem.message) < 600


def test_half_of_a_surrogate_pair_beside_an_error_is_no_traceback(
    definition: dict[str, Any],
) -> None:
    definition["axes"]["N"]["type"] = {"": [{"0\ud800": None}]}
    (problem,) = check(definition, "definition", "x.json")
    assert problem.pointer == "/axes/N/type"


def test_half_of_a_surrogate_pair_breaks_no_schema(definition: dict[str, Any]) -> None:
    definition["tags"] = ["\ud800"]
    assert check(definition, "definition", "x.json") == ()
    definition["axes"]["\ud800"] = {"type": "var"}
    (problem,) = check(definition, "definition", "x.json")
    assert (problem.rule, str(problem).isprintable()) == ("name-unsafe", True)


def _messages(value: Any, kind: Kind = "definition") -> list[tuple[str, str, str]]:
    return [(p.rule, p.pointer, p.message) for p in check(value, kind, "x.json")]


def test_unknown_field_suggests_and_missing_field_is_named(
    definition: dict[str, Any],
) -> None:
    definition["referense"] = definition.pop("reference")
    assert _messages(definition) == [
        ("schema-missing-field", "", "The field 'reference' is missing."),
        (
            "schema-unknown-field",
            "/referense",
            "The field 'referense' is unknown. Did you mean 'reference'?",
        ),
    ]


def test_an_axis_may_have_the_name_of_a_keyword(definition: dict[str, Any]) -> None:
    definition["axes"]["propertyNames"] = {"type": "const"}
    assert _messages(definition) == [
        (
            "schema-missing-field",
            "/axes/propertyNames",
            "The field 'value' is missing in 'propertyNames'.",
        )
    ]


def test_only_the_branch_that_type_names_is_judged(definition: dict[str, Any]) -> None:
    definition["axes"] = {
        "M": {"type": "var", "value": 1},
        "N": {"type": "const"},
        "K": {"type": "cnst", "value": 1},
    }
    assert _messages(definition) == [
        (
            "schema-unknown-field",
            "/axes/M/value",
            "The field 'value' does not belong to this type.",
        ),
        ("schema-missing-field", "/axes/N", "The field 'value' is missing in 'N'."),
        (
            "schema-value",
            "/axes/K/type",
            "'type' must be one of (const, var), is 'cnst'. Did you mean 'const'?",
        ),
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (4096.0, "4096.0"),
        (True, "true"),
        ("4", "'4'"),
        (None, "null"),
        ([1, 2], "an array of 2 items"),
        ({"a": 1}, "an object of 1 field"),
    ],
)
def test_an_axis_is_an_integer(
    definition: dict[str, Any], value: Any, shown: str
) -> None:
    definition["axes"]["N"]["value"] = value
    assert _messages(definition) == [
        (
            "schema-type",
            "/axes/N/value",
            f"'value' must be an integer, is {shown}.",
        )
    ]


@pytest.mark.parametrize(
    "name", ["../x", "/etc/x", "a\n", "a b", "", "1a", "é", "a" * 201, "a\x1b[31m", "_"]
)
def test_unsafe_names_are_refused_everywhere(
    definition: dict[str, Any], name: str
) -> None:
    definition["name"] = name
    definition["axes"][name] = {"type": "var"}
    definition["inputs"]["A"]["shape"] = [name]
    found = check(definition, "definition", "x.json")
    assert {p.rule for p in found} == {"name-unsafe"}
    escaped = name.replace("~", "~0").replace("/", "~1")
    assert {p.pointer for p in found} == {
        "/name",
        f"/axes/{escaped}",
        "/inputs/A/shape/0",
    }
    assert all(str(p).isprintable() for p in found)


@pytest.mark.parametrize("field", ["init", "check", "param"])
def test_the_dump_dialect_is_named(definition: dict[str, Any], field: str) -> None:
    definition[field] = "def f(): ..."
    (problem,) = check(definition, "definition", "x.json")
    assert problem.message == f"The field {field!r} is unknown."
    assert "FlashInfer's own dumps" in problem.fix


def test_hundreds_of_problems_are_all_reported(definition: dict[str, Any]) -> None:
    definition["axes"] = {f"a-{i}": {"typo": 1} for i in range(200)}
    found = check(definition, "definition", "x.json")
    counts = {
        rule: sum(p.rule == rule for p in found) for rule in {p.rule for p in found}
    }
    assert counts == {
        "name-unsafe": 200,
        "schema-unknown-field": 200,
    }


def test_many_errors_take_no_more_time_each(definition: dict[str, Any]) -> None:
    definition["axes"] = {f"a-{i}": {"typo": 1} for i in range(20_000)}
    start = time.process_time()
    assert len(check(definition, "definition", "x.json")) == MAX_PROBLEMS + 1
    # each error of jsonschema-rs's iter_errors has a copy of all axes: it takes minutes
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    ("source", "rule", "pointer"),
    [
        ({"type": "random", "value": 1}, "schema-unknown-field", "/value"),
        ({"type": "scalar"}, "schema-missing-field", ""),
        ({"type": "scalar", "value": "1"}, "schema-type", "/value"),
        ({"type": "safetensors", "path": "a"}, "schema-missing-field", ""),
        ({"type": "rnd"}, "schema-value", "/type"),
        ({}, "schema-missing-field", ""),
        ("random", "schema-type", ""),
    ],
)
def test_workload_inputs(source: Any, rule: str, pointer: str, workload: Any) -> None:
    line = workload(inputs={"A": source})
    (problem,) = check(line, "workload", "x.jsonl", 7)
    assert (problem.rule, problem.pointer, problem.line) == (
        rule,
        f"/workload/inputs/A{pointer}",
        7,
    )


@pytest.mark.parametrize("value", [-1, True, 1.5, 2**63, "1"])
def test_workload_axes_are_counts(value: Any, workload: Any) -> None:
    (problem,) = check(workload(axes={"M": value}), "workload", "x.jsonl", 1)
    assert problem.rule in ("schema-type", "schema-value")
    assert problem.pointer == "/workload/axes/M"


def test_a_workload_line_has_no_evaluation(workload: Any) -> None:
    line = {**workload(), "solution": "x", "evaluation": {"status": "PASSED"}}
    assert [(p.rule, p.pointer) for p in check(line, "workload", "x")] == [
        ("schema-type", "/solution"),
        ("schema-type", "/evaluation"),
    ]
    assert check(line, "trace", "x") == ()


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_figure_need_not_be_finite(number: float) -> None:
    line = copy.deepcopy(load_schema("trace")["examples"][0])
    line["evaluation"]["performance"]["latency_ms"] = number
    assert check(line, "trace", "x") == ()


@pytest.mark.parametrize("number", ["9" * 400, "NaN"])
def test_no_rule_speaks_of_what_stands_for_a_number_that_cannot_be_read(
    number: str,
) -> None:
    value = copy.deepcopy(load_schema("definition")["examples"][0])
    axis = next(a for a in value["axes"].values() if a["type"] == "const")
    axis["value"] = 4242
    text = json.dumps(value).replace("4242", number)
    read = checked_definition(text.encode(), "definitions/a/b.json")
    assert [p.rule for p in read.problems] in (["json-number"], ["json-nan"])
    assert not read.ok
