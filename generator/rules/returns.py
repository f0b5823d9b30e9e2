"""Return statements of `run`: one value for each output, where the source shows it."""

from __future__ import annotations

import ast

from generator.dataset.definition import Definition
from generator.dataset.python_source import Unparsable, own_nodes, parse_expression
from generator.problems import Problem
from generator.problems.messages import plural
from generator.problems.rule import error
from generator.rules.reference import run_function

REFERENCE_RETURNS = error(
    "reference-returns",
    "The reference's `run` does not return one value for each output.",
    "Return a tensor, or a tuple in the order of `outputs`.",
    "`return output` where the outputs are output and lse",
)


_TUPLE_NAMES = frozenset(("tuple", "Tuple"))


def check(definition: Definition) -> list[Problem]:
    """Return Problems for return statements of another number than the outputs.

    A call or a bare name may be anything: the annotation of `run` decides there, and
    where it says nothing, nothing is reported.
    """
    run = run_function(definition)
    if run is None:
        return []
    expected = len(definition.outputs)
    returns = [n for n in own_nodes(run) if isinstance(n, ast.Return)]
    if not returns:
        return [_problem(definition, "`run` returns nothing", expected, run.lineno)]
    problems = []
    unknown = False
    for statement in returns:
        for value in _branches(statement.value):
            what = _defect(value, expected)
            unknown |= value is not None and _count(value) is None
            if what is not None:
                problems.append(_problem(definition, what, expected, statement.lineno))
    declared = _annotated(run.returns)
    if unknown and not problems and declared is not None and declared != expected:
        what = f"`run` is annotated to return {plural(declared, 'value')}"
        problems.append(_problem(definition, what, expected, run.lineno))
    return problems


def _branches(value: ast.expr | None) -> list[ast.expr | None]:
    """Return the expressions that a conditional expression may evaluate to."""
    found: list[ast.expr | None] = []
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.IfExp):
            stack += [node.orelse, node.body]
        else:
            found.append(node)
    return found


def _defect(value: ast.expr | None, expected: int) -> str | None:
    if value is None or (isinstance(value, ast.Constant) and value.value is None):
        return "`run` returns nothing"
    if isinstance(value, ast.Dict | ast.DictComp):
        return "`run` returns a dict"
    count = _count(value)
    if count is None or count == expected:
        return None
    return f"`run` returns {plural(count, 'value')}"


def _count(value: ast.expr) -> int | None:
    """Return how many outputs an expression surely is, or None."""
    if isinstance(value, ast.Tuple | ast.List):
        if any(isinstance(item, ast.Starred) for item in value.elts):
            return None
        return len(value.elts)
    return None


def _annotated(annotation: ast.expr | None) -> int | None:
    """Return the number of values that an annotation promises, or None."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = parse_expression(annotation.value)
        except Unparsable:
            return None
    if isinstance(annotation, ast.Subscript):
        if _last_name(annotation.value) not in _TUPLE_NAMES:
            return None
        items = annotation.slice
        if not isinstance(items, ast.Tuple):
            return 1
        if any(isinstance(i, ast.Constant) and i.value is ... for i in items.elts):
            return None
        return len(items.elts)
    return 1 if _last_name(annotation) == "Tensor" else None


def _last_name(node: ast.expr | None) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _problem(definition: Definition, what: str, expected: int, line: int) -> Problem:
    message = f"{what}, but the definition has {plural(expected, 'output')}."
    return REFERENCE_RETURNS.problem(
        definition.path,
        message,
        pointer="/reference",
        line=line,
    )
