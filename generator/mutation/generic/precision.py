"""Defects of precision: float32 values rounded to bfloat16."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from generator.mutation.generic.code import Edit, SourceCode, written

_WIDE = ("float", "double")
_WIDE_NAMES = ("float32", "float64", "float", "double")
_CASTS = (*_WIDE, "half", "bfloat16", "int", "long", "to")
# sums over many values, and functions that contain one
_ACCUMULATES = ("sum", "mean", "cumsum", "einsum", "matmul", "bmm", "softmax")


def casts(code: SourceCode) -> Iterator[Edit]:
    """Yield casts to float32 of values that are first rounded to bfloat16."""
    for node in code.find(ast.Call):
        if not isinstance(node.func, ast.Attribute):
            continue
        name = node.func.attr
        widens = name in _WIDE and not node.args
        widens |= name == "to" and any(_is_wide(value) for value in node.args)
        if widens:
            narrow = _called(node.func.value, "bfloat16")
            wide = ast.Call(
                ast.Attribute(narrow, name, ast.Load()), node.args, node.keywords
            )
            yield Edit("precision", node, written(wide))


def sums(code: SourceCode) -> Iterator[Edit]:
    """Yield sums and matrix products rounded to bfloat16."""
    for node in code.find(ast.BinOp, ast.Call):
        if isinstance(node, ast.BinOp):
            accumulates = isinstance(node.op, ast.MatMult)
        else:
            function = node.func
            accumulates = (
                isinstance(function, ast.Attribute) and function.attr in _ACCUMULATES
            )
        if accumulates:
            rounded = _called(_called(node, "bfloat16"), "float")
            yield Edit("precision", node, written(rounded))


def dtypes(code: SourceCode) -> Iterator[Edit]:
    """Yield bfloat16 for `dtype=torch.float32` and the like."""
    for node in code.find(ast.keyword):
        if node.arg == "dtype" and _is_wide(node.value):
            narrow = ast.Attribute(node.value.value, "bfloat16", ast.Load())
            yield Edit("precision", node.value, written(narrow))


def is_of_dtype_alone(edit: Edit) -> bool:
    """Return whether an edit changes the precision or the dtype of a value, no more.

    All that is computed with it stays, so that no such edit hides another one.
    """
    if edit.kind == "precision":
        return True
    function = edit.node.func if isinstance(edit.node, ast.Call) else None
    if edit.kind != "dropped" or not isinstance(function, ast.Attribute):
        return False
    return function.attr in _CASTS and edit.text == written(function.value)


def _called(value: ast.expr, method: str) -> ast.Call:
    return ast.Call(ast.Attribute(value, method, ast.Load()), [], [])


def _is_wide(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in _WIDE_NAMES
