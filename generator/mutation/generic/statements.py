"""Defects of statements: one missing, a condition that always or never holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from generator.mutation.generic.code import Edit, SourceCode


def left_out(code: SourceCode) -> Iterator[Edit]:
    """Yield `pass` for a statement.

    Except for the first assignment of a name: the mutant would only raise NameError.
    """
    known: set[str] = set()
    for node in code.nodes:
        if isinstance(node, ast.arg):
            known.add(node.arg)
        elif isinstance(node, ast.Assign):
            names = set(_stored(node))
            if names <= known:
                yield Edit("statement", node, "pass")
            known |= names
        elif isinstance(node, (ast.AugAssign, ast.Expr, ast.Continue, ast.Break)):
            yield Edit("statement", node, "pass")


def accumulations(code: SourceCode) -> Iterator[Edit]:
    """Yield `x = y` for `x += y`."""
    for node in code.find(ast.AugAssign):
        assigned = ast.Assign([node.target], node.value, lineno=node.lineno)
        yield Edit("statement", node, ast.unparse(assigned))


def conditions(code: SourceCode) -> Iterator[Edit]:
    """Yield True and False for conditions; endless loops are among the mutants."""
    for node in code.find(ast.If, ast.While, ast.IfExp):
        for value in (True, False):
            if isinstance(node.test, ast.Constant) and node.test.value is value:
                continue
            yield Edit("condition", node.test, repr(value))


def _stored(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement assigns."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
