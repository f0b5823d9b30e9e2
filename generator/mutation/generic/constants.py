"""Defects of numbers: an eps, a scale, a block size, a flag, an axis."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from generator.mutation.generic.code import Edit, SourceCode

# a smaller number is an eps, which keeps a root or a quotient finite
_SMALL = 1e-2
# an integer from here on may be a block size
_BLOCK = 16
_AXES = ("dim", "axis", "dims")


def numbers(code: SourceCode) -> Iterator[Edit]:
    """Yield an eps ten times as large, other fractions doubled, integers off by one."""
    axes = {id(part) for node in axis_values(code) for part in ast.walk(node)}
    for node in code.find(ast.Constant):
        value = node.value
        if id(node) in axes:
            continue
        if isinstance(value, float):
            yield Edit("constant", node, repr(_enlarged(value)))
        elif type(value) is int:
            others = [value - 1, value + 1]
            if value >= _BLOCK:
                others += [value // 2, value * 2]
            for other in others:
                yield Edit("constant", node, f"({other})" if other < 0 else str(other))


def _enlarged(value: float) -> float:
    if not value:
        return 1.0
    # rounded to six digits: 1e-05, not 9.999999999999999e-06
    return float(f"{value * 10:.6g}") if 0 < value < _SMALL else value * 2


def flags(code: SourceCode) -> Iterator[Edit]:
    """Yield keepdim, descending and other flags inverted."""
    for node in code.find(ast.Constant):
        if isinstance(node.value, bool):
            yield Edit("flag", node, repr(not node.value))


def axes(code: SourceCode) -> Iterator[Edit]:
    """Yield the neighbours of an axis, and the first axis for a negative one."""
    for node in axis_values(code):
        axis = ast.literal_eval(node)
        others = [axis - 1, axis + 1] if axis >= 0 else [axis - 1, 0]
        for other in others:
            yield Edit("axis", node, repr(other))


def axis_values(code: SourceCode) -> Iterator[ast.expr]:
    """Yield the integer values of `dim=`, `axis=` and `dims=`, with their sign."""
    for keyword in code.find(ast.keyword):
        value = keyword.value
        bare = value.operand if isinstance(value, ast.UnaryOp) else value
        number = isinstance(bare, ast.Constant) and type(bare.value) is int
        if keyword.arg in _AXES and number:
            yield value
