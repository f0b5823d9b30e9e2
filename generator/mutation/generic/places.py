"""Defects of places: slices, ranges and indices off by one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from generator.mutation.generic.code import Edit, SourceCode, rewritten, written

_RANGES = ("range", "arange")


def slices(code: SourceCode) -> Iterator[Edit]:
    """Yield slices that begin one later, or end one earlier or later."""
    for node in code.find(ast.Slice):
        lower, upper = node.lower, node.upper
        # `:` selects everything: there is no bound to move
        if lower is None and upper is None:
            continue
        later = ast.Constant(1) if lower is None else _moved(lower, 1)
        yield Edit("slice", node, rewritten(node, lower=later))
        if upper is None:
            yield Edit("slice", node, rewritten(node, upper=ast.Constant(-1)))
            continue
        for step in (-1, 1):
            yield Edit("slice", node, rewritten(node, upper=_moved(upper, step)))


def ranges(code: SourceCode) -> Iterator[Edit]:
    """Yield ranges that begin one later or end one earlier, and arange shifted by one."""
    for node in code.find(ast.Call):
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else ""
        name = function.id if isinstance(function, ast.Name) else name
        if name not in _RANGES or not node.args:
            continue
        first, *rest = node.args
        if rest:
            later, end = [_moved(first, 1), *rest], [first, _moved(rest[0], -1)]
            end += rest[1:]
        else:
            later, end = [ast.Constant(1), first], [_moved(first, -1)]
        yield Edit("range", node, rewritten(node, args=later))
        yield Edit("range", node, rewritten(node, args=end))
        if name == "arange":
            yield Edit("range", node, written(_moved(node, 1)))


def indices(code: SourceCode) -> Iterator[Edit]:
    """Yield `x[i - 1]` for `x[i]`, for names and sums.

    At the first place this reads the last one, so that no exception reveals it.
    """
    for node in code.find(ast.Subscript):
        several = isinstance(node.slice, ast.Tuple)
        for place in node.slice.elts if several else [node.slice]:
            if isinstance(place, (ast.Name, ast.BinOp)):
                yield Edit("index", place, written(_moved(place, -1)))


def _moved(node: ast.expr, step: int) -> ast.expr:
    operator = ast.Add() if step > 0 else ast.Sub()
    return ast.BinOp(node, operator, ast.Constant(abs(step)))
