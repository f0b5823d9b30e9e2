"""Defects of operators: another operator or comparison, swapped or missing operands."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from generator.mutation.generic.code import Edit, SourceCode, rewritten, written
from generator.mutation.generic.constants import axis_values

_OTHER: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
_ONE_WAY = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult, ast.Pow)
# operators whose right operand alone is no plausible mistake
_LEFT_ONLY = (ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift, ast.Div)
_COMPARED: Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}


def binary(code: SourceCode) -> Iterator[Edit]:
    """Yield the opposite of each binary operator, also in `x += y`."""
    for node in code.find(ast.BinOp, ast.AugAssign):
        other = _OTHER.get(type(node.op))
        if other is not None:
            yield Edit("operator", node, rewritten(node, op=other()))


def comparisons(code: SourceCode) -> Iterator[Edit]:
    """Yield `<=` for `<`, and the negation, which inverts a mask."""
    for node in code.find(ast.Compare):
        for place, operator in enumerate(node.ops):
            for other in _COMPARED[type(operator)]:
                ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
                yield Edit("comparison", node, rewritten(node, ops=ops))


def logic(code: SourceCode) -> Iterator[Edit]:
    """Yield `or` for `and`, and operands without their `-`, `~` or `not`."""
    for node in code.find(ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield Edit("logic", node, rewritten(node, op=other))
    axes = {id(node) for node in axis_values(code)}
    for node in code.find(ast.UnaryOp):
        if id(node) not in axes:
            yield Edit("sign", node, written(node.operand))


def sides(code: SourceCode) -> Iterator[Edit]:
    """Yield `b - a` for `a - b`, for operators that do not commute."""
    for node in code.find(ast.BinOp):
        if isinstance(node.op, _ONE_WAY):
            text = rewritten(node, left=node.right, right=node.left)
            yield Edit("swapped", node, text)


def terms(code: SourceCode) -> Iterator[Edit]:
    """Yield one operand for `a + b`: a forgotten bias, scale or subtracted maximum."""
    for node in code.find(ast.BinOp):
        yield Edit("dropped", node, written(node.left))
        if not isinstance(node.op, _LEFT_ONLY):
            yield Edit("dropped", node, written(node.right))
