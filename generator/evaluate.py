"""Evaluate a constraint on real values without Python's eval.

Only what a condition over numbers needs is understood, with bounds on the size of
numbers and the number of steps; anything else raises Unsupported. Nothing of the
expression reaches an attribute or a function of Python's own.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_STEPS = 100_000
"""Nodes that one evaluation visits; a constraint has about ten."""

_MAX_BITS = 4096


class Unknown(Exception):
    """Say that the expression needs values that are not at hand (random inputs)."""


class Unsupported(Exception):
    """Say in a few words what the evaluator does not do."""


@dataclass(frozen=True)
class TensorValue:
    """Stand for a tensor: its shape, and its values in row-major order if known."""

    shape: tuple[int, ...]
    values: Sequence[int] | None = None


_BINARY: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: Mapping[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "all": all,
    "any": any,
    "bool": bool,
    "float": float,
    "int": int,
    "max": max,
    "min": min,
    "round": round,
    "sorted": sorted,
    "sum": sum,
}
_METHODS: Mapping[str, Callable[[Sequence[int]], Any]] = {
    "all": all,
    "any": any,
    "max": max,
    "min": min,
    "sum": sum,
    "tolist": list,
}
_CASTS = frozenset(("int", "long", "float", "cpu", "flatten"))


def evaluate(expression: ast.expr, names: Mapping[str, Any]) -> bool:
    """Return whether an expression over `names` is true.

    Raises Unknown or Unsupported, and nothing else.
    """
    try:
        return bool(_Evaluation(names).of(expression))
    except (Unknown, Unsupported):
        raise
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

    def of(self, node: ast.expr) -> Any:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Unsupported("it takes too many steps")
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise Unsupported(f"{type(node).__name__} is not understood")
        return handler(self, node)

    def constant(self, node: ast.Constant) -> Any:
        if node.value is None or isinstance(node.value, (bool, int, float)):
            return node.value
        raise Unsupported("only numbers are understood")

    def name(self, node: ast.Name) -> Any:
        if node.id not in self.names:
            raise Unknown
        return self.names[node.id]

    def binary(self, node: ast.BinOp) -> Any:
        left, right = _number(self.of(node.left)), _number(self.of(node.right))
        if isinstance(node.op, ast.Pow):
            if not isinstance(right, int) or not 0 <= right <= 64:
                raise Unsupported("a power this large")
            result = left**right
        elif type(node.op) in _BINARY:
            result = _BINARY[type(node.op)](left, right)
        else:
            raise Unsupported(f"{type(node.op).__name__} is not understood")
        if isinstance(result, int) and result.bit_length() > _MAX_BITS:
            raise Unsupported("a number this large")
        return result

    def unary(self, node: ast.UnaryOp) -> Any:
        value = self.of(node.operand)
        if isinstance(node.op, ast.Not):
            return not _plain(value)
        return -_number(value) if isinstance(node.op, ast.USub) else _number(value)

    def boolean(self, node: ast.BoolOp) -> bool:
        is_and = isinstance(node.op, ast.And)
        unknown = False
        for part in node.values:
            try:
                if bool(_plain(self.of(part))) is not is_and:
                    return not is_and
            except Unknown:
                # `False and unknown` is false all the same
                unknown = True
        if unknown:
            raise Unknown
        return is_and

    def compare(self, node: ast.Compare) -> bool:
        left = self.of(node.left)
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self.of(part)
            if isinstance(op, (ast.In, ast.NotIn)):
                found = _comparable(left) in _items(right)
                holds = found is isinstance(op, ast.In)
            elif isinstance(op, (ast.Is, ast.IsNot)):
                same = _comparable(left) is _comparable(right)
                holds = same is isinstance(op, ast.Is)
            else:
                holds = _COMPARE[type(op)](_comparable(left), _comparable(right))
            if not holds:
                return False
            left = right
        return True

    def choice(self, node: ast.IfExp) -> Any:
        return self.of(node.body if _plain(self.of(node.test)) else node.orelse)

    def sequence(self, node: ast.Tuple | ast.List) -> Sequence[Any]:
        items = [self.of(item) for item in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)

    def subscript(self, node: ast.Subscript) -> Any:
        value = self.of(node.value)
        if isinstance(node.slice, ast.Slice):
            parts = (node.slice.lower, node.slice.upper, node.slice.step)
            bounds = slice(*(None if p is None else self.of(p) for p in parts))
            if isinstance(value, TensorValue):
                if len(value.shape) != 1:
                    raise Unsupported("a slice of a tensor of several axes")
                found = _values(value)[bounds]
                return TensorValue((len(found),), found)
            return _items(value)[bounds]
        index = self.of(node.slice)
        if not isinstance(value, TensorValue):
            return _items(value)[index]
        if len(value.shape) != 1 or type(index) is not int:
            raise Unsupported("an index of a tensor of several axes")
        return TensorValue((), (_values(value)[index],))

    def attribute(self, node: ast.Attribute) -> Any:
        value = self.of(node.value)
        if isinstance(value, TensorValue) and node.attr == "shape":
            return value.shape
        if isinstance(value, TensorValue) and node.attr == "ndim":
            return len(value.shape)
        raise Unsupported(f"the attribute {node.attr[:40]!r} is not understood")

    def call(self, node: ast.Call) -> Any:
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            raise Unsupported("a call by keyword")
        if isinstance(node.func, ast.Attribute):
            return self._method(self.of(node.func.value), node)
        if not isinstance(node.func, ast.Name):
            raise Unsupported("a call of an expression")
        arguments = [self.of(argument) for argument in node.args]
        name = node.func.id
        if name == "len":
            return _length(*arguments)
        if name == "range":
            steps = range(*(_number(a) for a in arguments))
            return self._counted(steps)
        if name == "zip":
            return tuple(zip(*(_items(a) for a in arguments), strict=False))
        if name not in _FUNCTIONS:
            raise Unsupported(f"the function {name[:40]!r} is not understood")
        return _FUNCTIONS[name](*(_plain(a) for a in arguments))

    def _method(self, value: Any, node: ast.Call) -> Any:
        assert isinstance(node.func, ast.Attribute)
        name = node.func.attr
        if not isinstance(value, TensorValue):
            raise Unsupported("a method of something else than a tensor")
        if name == "size" and len(node.args) == 1:
            return value.shape[self.of(node.args[0])]
        if name == "size" and not node.args:
            return value.shape
        if node.args:
            raise Unsupported("a method with arguments")
        if name == "numel":
            return _length_of(value.shape)
        if name in ("dim", "ndimension"):
            return len(value.shape)
        if name == "item":
            return _number(value)
        if name in _CASTS:
            return TensorValue((_length_of(value.shape),), value.values)
        if name in _METHODS:
            return _METHODS[name](_values(value))
        raise Unsupported(f"the method {name[:40]!r} is not understood")

    def comprehension(self, node: ast.GeneratorExp | ast.ListComp) -> list[Any]:
        if len(node.generators) != 1:
            raise Unsupported("a comprehension over several things")
        loop = node.generators[0]
        found = []
        for item in self._counted(_items(self.of(loop.iter))):
            self._bind(loop.target, item)
            if all(_plain(self.of(test)) for test in loop.ifs):
                found.append(_plain(self.of(node.elt)))
        return found

    def _bind(self, target: ast.expr, item: Any) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = item
        elif isinstance(target, ast.Tuple):
            for part, value in zip(target.elts, item, strict=True):
                self._bind(part, value)
        else:
            raise Unsupported("an assignment")

    def _counted(self, items: Sequence[Any]) -> Sequence[Any]:
        if len(items) > MAX_STEPS:
            raise Unsupported("it takes too many steps")
        return items


def _values(value: TensorValue) -> Sequence[int]:
    if value.values is None:
        raise Unknown
    return value.values


def _plain(value: Any) -> Any:
    """Return a tensor of one value as its value."""
    if isinstance(value, TensorValue):
        return _number(value) if _length_of(value.shape) == 1 else _items(value)
    return value


def _comparable(value: Any) -> Any:
    """Return what can be compared: tensors are compared element by element."""
    if isinstance(value, TensorValue) and _length_of(value.shape) != 1:
        raise Unsupported("a comparison of whole tensors")
    return _plain(value)


def _number(value: Any) -> Any:
    if isinstance(value, TensorValue):
        if _length_of(value.shape) != 1:
            raise Unsupported("arithmetic on tensors")
        return _values(value)[0]
    if isinstance(value, (bool, int, float)):
        return value
    raise Unsupported("arithmetic on something else than numbers")


def _items(value: Any) -> Sequence[Any]:
    if isinstance(value, TensorValue):
        if len(value.shape) != 1:
            raise Unsupported("the items of a tensor of several axes")
        return _values(value)
    if isinstance(value, (tuple, list, range)):
        return value
    raise Unsupported("the items of a number")


def _length(value: Any) -> int:
    if isinstance(value, TensorValue):
        return value.shape[0]
    return len(_items(value))


def _length_of(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


_HANDLERS: Mapping[type, Callable[[_Evaluation, Any], Any]] = {
    ast.Constant: _Evaluation.constant,
    ast.Name: _Evaluation.name,
    ast.BinOp: _Evaluation.binary,
    ast.UnaryOp: _Evaluation.unary,
    ast.BoolOp: _Evaluation.boolean,
    ast.Compare: _Evaluation.compare,
    ast.IfExp: _Evaluation.choice,
    ast.Tuple: _Evaluation.sequence,
    ast.List: _Evaluation.sequence,
    ast.Subscript: _Evaluation.subscript,
    ast.Attribute: _Evaluation.attribute,
    ast.Call: _Evaluation.call,
    ast.GeneratorExp: _Evaluation.comprehension,
    ast.ListComp: _Evaluation.comprehension,
}
