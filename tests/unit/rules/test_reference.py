"""What the source of a reference says about `run`, read and never executed."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.dataset.definition import LoadedDefinition, build_definition
from generator.problems import Problem
from generator.rules import constraints, reference


def _definition(source: str, outputs: int = 1, **changes: Any) -> LoadedDefinition:
    tensor = {"shape": ["M"], "dtype": "float32"}
    value = {
        "name": "x",
        "op_type": "y",
        "axes": {"M": {"type": "var"}},
        "inputs": {"a": tensor, "b": tensor},
        "outputs": {f"out{i}": tensor for i in range(outputs)},
        "reference": source,
        **changes,
    }
    return build_definition(value, "definitions/y/x.json", "")


def _judge(source: str, outputs: int = 1) -> list[tuple[str, int | None]]:
    definition = _definition(source, outputs)
    found = list(reference.check(definition))
    return [(p.rule, p.line) for p in found]


@pytest.mark.parametrize(
    "signature",
    [
        "a, b",
        "a, /, b",
        "a, b, eps=1e-6",
        "a, b=None",
        "a, b, *rest",
        "a, b, **rest",
        "a, b, *, eps=1",
        "a: 'Tensor', b: int = 1, /",
    ],
)
def test_signatures_that_take_the_inputs(signature: str) -> None:
    assert _judge(f"def run({signature}):\n    return a\n") == []


@pytest.mark.parametrize(
    "signature",
    ["b, a", "a", "", "a, *, b", "*args", "*, a, b", "a, c", "a, b, c", "a, b, *, c"],
)
def test_signatures_that_do_not(signature: str) -> None:
    source = f"\ndef run({signature}):\n    return 1\n"
    assert _judge(source) == [("reference-parameters", 2)]


def test_the_message_shows_both_orders() -> None:
    (problem,) = reference.check(_definition("def run(b, *, a):\n    return a\n"))
    assert problem.message == (
        "`run` takes (b, *, a), but the inputs are (a, b): callers pass them "
        "positionally."
    )


@pytest.mark.parametrize(
    ("source", "kind", "line"),
    [
        ("async def run(a, b):\n    return a\n", "an async function", 1),
        ("\nclass run:\n    pass\n", "a class", 2),
        ("run = lambda a, b: a\n", "assigned", 1),
        ("run: object = print\n", "assigned", 1),
        ("from math import exp as run\n", "imported", 1),
        ("def run(a, b):\n    return a\n\nx, run = 1, print\n", "assigned", 4),
    ],
)
def test_run_must_be_a_plain_function(source: str, kind: str, line: int) -> None:
    (problem,) = reference.check(_definition(source))
    assert problem.rule == "reference-run-kind"
    assert problem.message == f"`run` is {kind}, but it must be a plain function."
    assert problem.line == line


def test_a_generator_is_no_run() -> None:
    assert _judge("def run(a, b):\n    yield a\n")[0] == ("reference-run-kind", 1)


def test_an_attribute_of_run_is_not_an_assignment_to_it() -> None:
    assert _judge("def run(a, b):\n    return a\nrun.x = 1\n") == []


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("def gemm_reference(a, b):\n    return a\n", "Was 'gemm_reference' meant?"),
        ("def Run(a, b):\n    return a\n", "Was 'Run' meant?"),
        ("if 1:\n    def run(a, b):\n        return a\n", "The one on line 2 is"),
    ],
)
def test_a_missing_run_comes_with_a_guess(source: str, hint: str) -> None:
    (problem,) = reference.check(_definition(source))
    assert problem.rule == "reference-no-run"
    assert hint in problem.message


@pytest.mark.parametrize(
    ("body", "outputs"),
    [
        ("return a", 1),
        ("return a, b", 2),
        ("return [a, b]", 2),
        ("return f(a)", 2),
        ("return a.to(b)", 2),
        ("return (a,)", 1),
        ("return (*a, b)", 3),
        ("if a:\n        return a, b\n    return a", 2),
        ("return (a, b) if a else f(b)", 2),
        ("def f():\n        return a, b\n    return a", 1),
        ("f = lambda: (a, b)\n    return f", 1),
    ],
)
def test_returns_that_may_be_right(body: str, outputs: int) -> None:
    assert _judge(f"def run(a, b):\n    {body}\n", outputs) == []


@pytest.mark.parametrize(
    ("body", "outputs", "line"),
    [
        ("return a, b", 1, 2),
        ("return a, b, a", 2, 2),
        ("return (a,)", 2, 2),
        ("return", 1, 2),
        ("return None", 1, 2),
        ("pass", 1, 1),
        ("return {'out0': a}", 1, 2),
        ("return a if b else (a, b)", 1, 2),
        ("def f():\n        return a", 1, 1),
    ],
)
def test_returns_that_are_wrong(body: str, outputs: int, line: int) -> None:
    found = _judge(f"def run(a, b):\n    {body}\n", outputs)
    assert found == [("reference-returns", line)]


@pytest.mark.parametrize(
    ("annotation", "outputs", "wrong"),
    [
        ("torch.Tensor", 2, True),
        ("torch.Tensor", 1, False),
        ("tuple[Tensor, Tensor]", 1, True),
        ("typing.Tuple[Tensor, Tensor]", 2, False),
        ("tuple[Tensor, ...]", 3, False),
        ("'tuple[Tensor, Tensor]'", 3, True),
        ("'not ) python'", 3, False),
        ("Any", 3, False),
    ],
)
def test_an_annotation_decides_where_the_source_does_not(
    annotation: str, outputs: int, wrong: bool
) -> None:
    found = _judge(f"def run(a, b) -> {annotation}:\n    return f(a)\n", outputs)
    assert found == ([("reference-returns", 1)] if wrong else [])


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("x = (", 1),
        ("def run(a, b):\nreturn a\n", 2),
        ("\nreturn 1\n", 2),
        ("def run(a, a):\n    return a\n", 1),
        ("x = '\0'", None),
        ("x = " + "(" * 500 + ")" * 500, 1),
        ("x = " + "a + " * 100_000 + "a", None),
        ("x = " + "-" * 200_000 + "1", None),
        ("x = a" + ".b" * 100_000, None),
    ],
)
def test_source_that_does_not_compile(source: str, line: int | None) -> None:
    (problem,) = reference.check(_definition(source))
    assert (problem.rule, problem.pointer) == ("reference-syntax", "/reference")
    if line is not None:
        assert problem.line == line
    assert len(problem.message) < 200


def test_warnings_about_the_source_do_not_leak() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert _judge("def run(a, b):\n    '\\d'\n    return a is 1\n") == []
    assert caught == []


def test_imports_are_read_at_any_depth() -> None:
    source = (
        "import torch, math\nfrom torch import nn\nimport os.path, sys\n"
        "def run(a, b):\n    from .x import y\n    return a\n"
    )
    found = reference.check(_definition(source))
    assert [(p.message, p.line) for p in found] == [
        ("The reference imports 'os.path'.", 3),
        ("The reference imports 'sys'.", 3),
        ("The reference imports '.x'.", 5),
    ]


def _constraints(*texts: str) -> list[Problem]:
    source = "def run(a, b):\n    return a\n"
    return list(constraints.check(_definition(source, constraints=list(texts))))


@pytest.mark.parametrize(
    "text",
    [
        "M == a[-1].item()",
        "len(a) == M + 1",
        "all(x > 0 for x in a)",
        "sum(a) <= max(M, 1)",
        "a.shape[0] == M",
        "not M % 2",
    ],
)
def test_constraints_over_axes_and_inputs(text: str) -> None:
    assert _constraints(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "M =",
        "M == 1; a",
        "import os",
        "(yield)",
        "(M := 2)",
        "lambda: 1",
        " ",
        "(" * 300,
        "M\0",
    ],
)
def test_constraints_that_are_no_condition(text: str) -> None:
    found = _constraints("M > 0", text)
    assert [(p.rule, p.pointer) for p in found] == [
        ("constraint-syntax", "/constraints/1")
    ]


def test_unknown_names_in_constraints_are_all_named() -> None:
    found = _constraints("spam > 0 and __import__('os') and m")
    assert [p.message.split(" uses ")[1] for p in found] == [
        "'__import__', which is no axis and no input.",
        "'m', which is no axis and no input. Did you mean 'M'?",
        "'spam', which is no axis and no input.",
    ]


@given(st.text())
def test_any_source_is_judged_without_raising(source: str) -> None:
    definition = _definition(source, constraints=[source])
    found = [*reference.check(definition), *constraints.check(definition)]
    assert found
    assert all(str(problem).isprintable() for problem in found)
