"""Evaluate a definition's constraints on real values, without Python's eval.

Only what a condition over numbers and tensors needs is understood, with bounds on the
size of numbers and the number of steps. A tensor is anything with a `shape`: a torch
tensor or a `TensorValue`. No other attribute or function of a value is reached.
"""

from __future__ import annotations

import ast
import math
import operator as op
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

MAX_STEPS = 100_000
"""Steps of one evaluation: one for a node, one for 256 values; a constraint has ten."""
_MAX_BITS, _MAX_POWER = 4096, 64


class Unknown(Exception):
    """Raised for a value that is not known: an axis without a size, or a random input."""


class Unsupported(Exception):
    """Raised for what the evaluator does not support, in a few words."""


class TensorValue(NamedTuple):
    """A tensor of a constraint: its shape, and its values in row-major order if known."""

    shape: tuple[int, ...]
    values: Sequence[Any] | None = None


_OPERATORS: Mapping[type, Any] = {
    ast.Add: op.add,
    ast.Sub: op.sub,
    ast.Mult: op.mul,
    ast.Div: op.truediv,
    ast.FloorDiv: op.floordiv,
    ast.Mod: op.mod,
    ast.Pow: op.pow,
    ast.Eq: op.eq,
    ast.NotEq: op.ne,
    ast.Is: op.is_,
    ast.IsNot: op.is_not,
    ast.Lt: op.lt,
    ast.LtE: op.le,
    ast.Gt: op.gt,
    ast.GtE: op.ge,
    ast.USub: op.neg,
    ast.Not: op.not_,
}
_OF_NUMBERS = (abs, bool, float, int, range, round)
_OF_ITEMS = (all, any, len, max, min, sorted, sum, zip)
FUNCTIONS: Mapping[str, Any] = {f.__name__: f for f in (*_OF_NUMBERS, *_OF_ITEMS)}
"""The functions that a constraint may call."""

_WRONG = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def evaluate(expression: ast.expr, names: Mapping[str, Any]) -> bool:
    """Return whether an expression over `names` is true.

    `names` maps axes to sizes, and inputs to tensors, numbers or None. Raises Unknown
    or Unsupported, and nothing else.
    """
    try:
        return bool(_Evaluation(names).plain(expression))
    except RecursionError:
        raise Unsupported("it is nested too deep") from None
    except _WRONG as error:
        # an index out of range, a division by zero, the shape of a number
        raise Unsupported(f"{type(error).__name__} while evaluating") from None


class _Evaluation:
    """The walk of one expression; `names` grows by the variables of comprehensions."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = dict(names)
        self.steps = 0

    def spend(self, steps: int) -> None:
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise Unsupported("it takes too many steps")

    def of(self, node: ast.expr) -> Any:
        self.spend(1)
        match node:
            case ast.Name(name):
                if name not in self.names:
                    raise Unknown(f"{name[:40]!r} has no value")
                return self.names[name]
            case ast.Constant(bool() | int() | float() | None as value):
                return value
            case ast.Compare(left, operators, parts):
                pairs = zip(operators, (left, *parts), parts, strict=False)
                return all(self.compared(*pair) for pair in pairs)
            case ast.BinOp(left, operator, right):
                return _computed(operator, self.plain(left), self.plain(right))
            case ast.Call(ast.Attribute(value, "item"), [], []):
                return self.plain(value)
            case ast.UnaryOp(operator, operand):
                return _OPERATORS[type(operator)](self.plain(operand))
            case ast.BoolOp(operator, parts):
                return self.boolean(isinstance(operator, ast.And), parts)
            case ast.IfExp(test, body, orelse):
                return self.of(body if self.plain(test) else orelse)
            case ast.Tuple(parts):
                return tuple(map(self.plain, parts))
            case ast.List(parts):
                return list(map(self.plain, parts))
            case ast.Subscript(value, ast.Slice(lower, upper, step)):
                whole = self.of(value)
                bounds: Any = [
                    bound and self.plain(bound) for bound in (lower, upper, step)
                ]
                part = self.items(whole)[slice(*bounds)]
                return TensorValue((len(part),), part) if _is_tensor(whole) else part
            case ast.Subscript(value, index):
                return self.items(self.of(value))[self.plain(index)]
            case ast.Attribute(value, "shape"):
                return tuple(self.of(value).shape)
            case ast.Attribute(value, "ndim"):
                return len(self.of(value).shape)
            case ast.Call(ast.Name(name), arguments, []) if name in FUNCTIONS:
                return self.call(FUNCTIONS[name], [*map(self.of, arguments)])
            case ast.Call(ast.Attribute(value, "tolist"), [], []):
                return list(self.items(self.of(value)))
            case ast.Call(ast.Attribute(value, "numel"), [], []):
                return math.prod(self.of(value).shape)
            case ast.Call(ast.Attribute(value, "size"), [], []):
                return tuple(self.of(value).shape)
            case ast.Call(ast.Attribute(value, "size"), [axis], []):
                return self.of(value).shape[self.plain(axis)]
            case ast.Call(ast.Attribute(value, "max" | "min" | "sum" as name), [], []):
                return FUNCTIONS[name](self.values(self.of(value)))
            case ast.GeneratorExp(item, [loop]) | ast.ListComp(item, [loop]):
                return list(self.comprehension(item, loop))
        raise Unsupported(f"this {type(node).__name__} is not understood")

    def plain(self, node: ast.expr) -> Any:
        """Return a value that can be compared; of a tensor, its only element."""
        return self.single(self.of(node))

    def single(self, value: Any) -> Any:
        if not _is_tensor(value):
            return value
        if math.prod(value.shape) != 1:
            raise Unsupported("whole tensors are compared or computed with")
        return self.values(value)[0]

    def items(self, value: Any) -> Any:
        if _is_tensor(value):
            (_,) = value.shape  # of several axes, an item would be a tensor
            return self.values(value)
        return value

    def values(self, tensor: Any) -> Any:
        self.spend(math.prod(tensor.shape) >> 8)
        if isinstance(tensor, TensorValue):
            elements: Any = tensor.values
        else:  # weights that are not made yet have a shape alone
            elements = tensor.flatten().tolist() if hasattr(tensor, "flatten") else None
        if elements is None:
            raise Unknown("the values of a tensor are not known")
        return elements

    def boolean(self, is_and: bool, parts: Sequence[ast.expr]) -> bool:
        unknown = None
        for part in parts:
            try:
                if bool(self.plain(part)) is not is_and:
                    return not is_and
            except Unknown as error:
                unknown = error  # `False and unknown` is false all the same
        if unknown is not None:
            raise unknown
        return is_and

    def compared(self, operator: ast.cmpop, left: ast.expr, right: ast.expr) -> bool:
        value = self.plain(left)
        if isinstance(operator, (ast.In, ast.NotIn)):
            is_in = value in self.items(self.of(right))
            return is_in is isinstance(operator, ast.In)
        return bool(_OPERATORS[type(operator)](value, self.plain(right)))

    def call(self, function: Any, values: Sequence[Any]) -> Any:
        if function is len and _is_tensor(values[0]):
            return values[0].shape[0]
        is_of_items = function is zip or (function in _OF_ITEMS and len(values) == 1)
        result = function(*map(self.items if is_of_items else self.single, values))
        if function is range:
            self.spend(min(len(result), MAX_STEPS))
        return result

    def comprehension(self, item: ast.expr, loop: ast.comprehension) -> Iterator[Any]:
        for value in self.items(self.of(loop.iter)):
            targets: Any = [loop.target]
            values = [value]
            if isinstance(loop.target, ast.Tuple):
                targets, values = loop.target.elts, value
            self.names |= {t.id: v for t, v in zip(targets, values, strict=True)}
            if all(map(self.plain, loop.ifs)):
                yield self.plain(item)


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "shape")


def _computed(operator: ast.operator, left: Any, right: Any) -> Any:
    is_power = isinstance(operator, ast.Pow)
    # a list times a number may be as large as a number to the power of one
    numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
    if not numbers or (
        is_power and not (type(right) is int and 0 <= right <= _MAX_POWER)
    ):
        raise Unsupported("no numbers, or a power this large")
    result = _OPERATORS[type(operator)](left, right)
    if isinstance(result, int) and result.bit_length() > _MAX_BITS:
        raise Unsupported("a number this large")
    return result
