"""Constraints: each is a Python expression over the definition's own names."""

from __future__ import annotations

import ast

from generator.definition import Definition
from generator.pointer import pointer
from generator.problems import Problem
from generator.rules.python import Unparsable, parse_expression
from generator.rules.table import finding
from generator.wording import did_you_mean, quote

_NUMERIC = ("abs", "bool", "float", "int", "max", "min", "round", "sum")
_SEQUENCES = ("all", "any", "len", "range", "sorted", "zip")
KNOWN_FUNCTIONS = frozenset((*_NUMERIC, *_SEQUENCES))
"""The builtins that a constraint may call."""

_STATEFUL = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await, ast.Lambda)


def names_in(constraint: str) -> frozenset[str]:
    """Return the names that an expression reads; none if it does not parse."""
    try:
        tree = parse_expression(constraint)
    except Unparsable:
        return frozenset()
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return frozenset(name.id for name in names) - bound


def check(definition: Definition) -> list[Problem]:
    """Return Problems for constraints that don't parse or use unknown names."""
    known = {*definition.axes, *definition.inputs, *KNOWN_FUNCTIONS}
    problems = []
    for index, constraint in enumerate(definition.constraints):
        where = pointer(("constraints", index))
        reason = _syntax_defect(constraint)
        if reason is not None:
            message = f"The constraint {quote(constraint)} {reason}."
            problems.append(
                finding("constraint-syntax", definition.path, message, pointer=where)
            )
            continue
        for name in sorted(names_in(constraint) - known):
            message = (
                f"The constraint {quote(constraint)} uses {quote(name)}, which is no "
                f"axis and no input.{did_you_mean(name, known)}"
            )
            problems.append(
                finding("constraint-name", definition.path, message, pointer=where)
            )
    return problems


def _syntax_defect(constraint: str) -> str | None:
    try:
        tree = parse_expression(constraint)
    except Unparsable as error:
        return f"does not parse: {error.reason}"
    for node in ast.walk(tree):
        if isinstance(node, _STATEFUL):
            return f"uses {type(node).__name__}, which states no condition"
    return None
