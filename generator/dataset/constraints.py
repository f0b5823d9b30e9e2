"""Evaluate a definition's constraints on real values, without Python's eval.

Only what a condition over numbers and tensors needs is understood, with bounds on the
size of numbers and the number of steps. A tensor is anything with a `shape`: a torch
tensor or a `TensorValue`. No other attribute or function of a value is reached.
"""

from __future__ import annotations

import ast
import math
import operator as op
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_STEPS = 100_000
"""Nodes and 256ths of values that one evaluation visits; a constraint has ten nodes."""
_MAX_BITS, _MAX_POWER = 4096, 64


class Unknown(Exception):
    """Report a value that is not known: an axis without a size, or a random input."""


class Unsupported(Exception):
    """Report in a few words what the evaluator does not support."""


@dataclass(frozen=True)
class TensorValue:
    """Stand for a tensor: its shape, and its values in row-major order if known."""

    shape: tuple[int, ...]
    values: Sequence[Any] | None = None


_BINARY: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: op.add,
    ast.Sub: op.sub,
    ast.Mult: op.mul,
    ast.Div: op.truediv,
    ast.FloorDiv: op.floordiv,
    ast.Mod: op.mod,
    ast.Pow: op.pow,
}
_COMPARE: Mapping[type, Callable[[Any, Any], bool]] = {
    ast.Eq: op.eq,
    ast.NotEq: op.ne,
    ast.Is: op.is_,
    ast.IsNot: op.is_not,
    ast.Lt: op.lt,
    ast.LtE: op.le,
    ast.Gt: op.gt,
    ast.GtE: op.ge,
}
_OF_NUMBERS: Mapping[str, Any] = {f.__name__: f for f in (abs, bool, float, int, round)}
_OF_ITEMS: Mapping[str, Any] = {
    f.__name__: f for f in (all, any, max, min, sum, sorted)
}
FUNCTIONS = frozenset((*_OF_NUMBERS, *_OF_ITEMS, "len", "range", "zip"))
"""The functions that a constraint may call."""


def evaluate(expression: ast.expr, names: Mapping[str, Any]) -> bool:
    """Return whether an expression over `names` is true.

    `names` maps axes to sizes, and inputs to tensors, numbers or None. Raises Unknown
    or Unsupported, and nothing else.
    """
    try:
        return bool(_Evaluation(names).plain(expression))
    except RecursionError:
        raise Unsupported("it is nested too deep") from None
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        # an index out of range, a division by zero, an int compared with a tuple
        raise Unsupported(f"{type(error).__name__} while evaluating") from None


class _Evaluation:
    """Walk one expression; `names` grows by the variables of comprehensions."""

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
            case ast.Constant(bool() | int() | float() | None as value):
                return value
            case ast.Name(name) if name in self.names:
                return self.names[name]
            case ast.Name(name):
                raise Unknown(f"{name[:40]!r} has no value")
            case ast.BinOp(left, operator, right) if type(operator) in _BINARY:
                return _computed(operator, self.number(left), self.number(right))
            case ast.UnaryOp(ast.Not(), operand):
                return not self.plain(operand)
            case ast.UnaryOp(ast.USub(), operand):
                return -self.number(operand)
            case ast.BoolOp(operator, parts):
                return self.boolean(isinstance(operator, ast.And), parts)
            case ast.Compare(left, operators, parts):
                return self.compare(left, operators, parts)
            case ast.IfExp(test, body, orelse):
                return self.of(body if self.plain(test) else orelse)
            case ast.Tuple(items) | ast.List(items):
                found = [self.plain(item) for item in items]
                return found if isinstance(node, ast.List) else tuple(found)
            case ast.Subscript(value, ast.Slice(lower, upper, step)):
                whole = self.of(value)
                bounds: Any = [b and self.number(b) for b in (lower, upper, step)]
                part = self.items(whole)[slice(*bounds)]
                is_tensor = hasattr(whole, "shape")
                return TensorValue((len(part),), part) if is_tensor else part
            case ast.Subscript(value, index):
                return self.items(self.of(value))[self.number(index)]
            case ast.Attribute(value, "shape" | "ndim" as name):
                shape = self.tensor(value).shape
                return tuple(shape) if name == "shape" else len(shape)
            case ast.Call(ast.Name(name), arguments, []):
                return self.call(name, arguments)
            case ast.Call(ast.Attribute(value, "item"), [], []):
                return self.number(value)
            case ast.Call(ast.Attribute(value, "tolist"), [], []):
                return list(self.items(self.of(value)))
            case ast.Call(ast.Attribute(value, "numel"), [], []):
                return math.prod(self.tensor(value).shape)
            case ast.Call(ast.Attribute(value, "size"), arguments, []):
                shape = tuple(self.tensor(value).shape)
                return shape[self.number(arguments[0])] if arguments else shape
            case ast.Call(ast.Attribute(value, name), [], []) if name in _OF_ITEMS:
                return _OF_ITEMS[name](self.values(self.tensor(value)))
            case ast.GeneratorExp(item, [loop]) | ast.ListComp(item, [loop]):
                return self.comprehension(item, loop)
        raise Unsupported(f"this {type(node).__name__} is not understood")

    def tensor(self, node: ast.expr) -> Any:
        value = self.of(node)
        if hasattr(value, "shape"):
            return value
        raise Unsupported("something else than a tensor is used as one")

    def values(self, tensor: Any) -> Sequence[Any]:
        self.spend(math.prod(tensor.shape) >> 8)
        if isinstance(tensor, TensorValue):
            found = tensor.values
        else:  # weights that are not made yet have a shape alone
            found = tensor.flatten().tolist() if hasattr(tensor, "flatten") else None
        if found is None:
            raise Unknown("the values of a tensor are not known")
        return found

    def items(self, value: Any) -> Sequence[Any]:
        if hasattr(value, "shape") and len(value.shape) == 1:
            return self.values(value)
        if isinstance(value, (tuple, list, range)):
            return value
        raise Unsupported("the items of a number, or of a tensor of several axes")

    def plain(self, node: ast.expr) -> Any:
        """Return a value that can be compared; of a tensor, its only element."""
        value = self.of(node)
        if not hasattr(value, "shape"):
            return value
        if math.prod(value.shape) != 1:
            raise Unsupported("whole tensors are compared or computed with")
        return self.values(value)[0]

    def number(self, node: ast.expr) -> Any:
        value = self.plain(node)
        if isinstance(value, (bool, int, float)):
            return value
        raise Unsupported("something else than a number is used as one")

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

    def compare(
        self, first: ast.expr, operators: Sequence[ast.cmpop], parts: Sequence[ast.expr]
    ) -> bool:
        left = self.plain(first)
        for operator, part in zip(operators, parts, strict=True):
            if isinstance(operator, (ast.In, ast.NotIn)):
                right: Any = self.items(self.of(part))
                holds = (left in right) is isinstance(operator, ast.In)
            else:
                right = self.plain(part)
                holds = _COMPARE[type(operator)](left, right)
            if not holds:
                return False
            left = right
        return True

    def call(self, name: str, arguments: Sequence[ast.expr]) -> Any:
        if name in _OF_NUMBERS or (name in ("max", "min") and len(arguments) > 1):
            function = _OF_NUMBERS.get(name) or _OF_ITEMS[name]
            return function(*map(self.number, arguments))
        if name == "range":
            found = range(*map(self.number, arguments))
            self.spend(min(len(found), MAX_STEPS))
            return found
        if name == "zip":
            return list(zip(*(self.items(self.of(a)) for a in arguments), strict=False))
        if name not in FUNCTIONS or len(arguments) != 1:
            raise Unsupported(f"this call of {name[:40]!r} is not understood")
        value = self.of(arguments[0])
        if name == "len":
            return value.shape[0] if hasattr(value, "shape") else len(value)
        return _OF_ITEMS[name](self.items(value))

    def comprehension(self, item: ast.expr, loop: ast.comprehension) -> list[Any]:
        found = []
        for value in self.items(self.of(loop.iter)):
            names = loop.target.elts if isinstance(loop.target, ast.Tuple) else ()
            pairs = zip(names, value, strict=True) if names else [(loop.target, value)]
            for target, bound in pairs:
                if not isinstance(target, ast.Name):
                    raise Unsupported("an assignment to something else than a name")
                self.names[target.id] = bound
            if all(self.plain(test) for test in loop.ifs):
                found.append(self.plain(item))
        return found


def _computed(operator: ast.operator, left: Any, right: Any) -> Any:
    is_power = isinstance(operator, ast.Pow)
    if is_power and not (isinstance(right, int) and 0 <= right <= _MAX_POWER):
        raise Unsupported("a power this large")
    result = _BINARY[type(operator)](left, right)
    if isinstance(result, int) and result.bit_length() > _MAX_BITS:
        raise Unsupported("a number this large")
    return result
