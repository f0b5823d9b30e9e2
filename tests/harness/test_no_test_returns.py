"""No test function returns a value or early: pytest would count it as passed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.builders import ROOT

FILES = sorted((ROOT / "tests").rglob("*.py"))
SOURCES = [*FILES, *sorted((ROOT / "generator" / "running").rglob("*.py"))]


def returns(function: ast.AST) -> Iterator[ast.Return]:
    """Yield the return statements of a function, not those of functions inside it."""
    for node in ast.iter_child_nodes(function):
        if isinstance(node, ast.Return):
            yield node
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from returns(node)


def offending(source: str) -> list[str]:
    return [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.name.startswith("test_")
        and any(returns(node))
    ]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_test_function_returns(path):
    assert offending(path.read_text("utf-8")) == []


def test_rendered_files_are_among_those():
    names = {path.relative_to(ROOT).as_posix() for path in SOURCES}
    assert "tests/references/test_rmsnorm.py" in names
    assert "generator/running/harness.py" in names


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def test_a():\n    return 1\n", ["test_a"]),
        ("def test_a():\n    if x:\n        return\n    assert y\n", ["test_a"]),
        ("class A:\n    async def test_b(self):\n        return None\n", ["test_b"]),
        ("def test_a():\n    def f():\n        return 1\n    assert f()\n", []),
        ("def helper():\n    return 1\n", []),
    ],
)
def test_a_return_is_found_where_it_counts(source, names):
    assert offending(source) == names
