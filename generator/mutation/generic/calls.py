"""Defects of calls: one missing, another function, arguments swapped, masks inverted."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from generator.mutation.generic.code import Edit, SourceCode, rewritten, written

_MODULES = ("torch", "math", "np", "numpy", "F", "nn", "functional", "linalg")
# these return something else than a changed tensor: without them the mutant only raises
_NOT_DROPPED = ("tolist", "item", "size", "nonzero", "dim", "new_zeros", "new_empty")
_TRANSPOSED = ("T", "mT", "H", "mH")
# the functions that an author most easily confuses with one
_NEAREST: Mapping[str, tuple[str, ...]] = {
    "max": ("min",),
    "min": ("max",),
    "amax": ("amin",),
    "amin": ("amax",),
    "argmax": ("argmin",),
    "argmin": ("argmax",),
    "maximum": ("minimum",),
    "minimum": ("maximum",),
    "clamp_min": ("clamp_max",),
    "clamp_max": ("clamp_min",),
    "floor": ("ceil",),
    "ceil": ("floor",),
    "sum": ("mean",),
    "mean": ("sum",),
    "exp": ("exp2",),
    "exp2": ("exp",),
    "log": ("log2",),
    "log2": ("log",),
    "rsqrt": ("sqrt",),
    "sqrt": ("rsqrt",),
    "square": ("abs",),
    "sigmoid": ("tanh",),
    "tanh": ("sigmoid",),
    "silu": ("relu", "gelu"),
    "gelu": ("silu",),
    "relu": ("abs",),
    "softplus": ("relu",),
    "softmax": ("log_softmax",),
    "zeros": ("ones",),
    "zeros_like": ("ones_like",),
    "ones": ("zeros",),
    "ones_like": ("zeros_like",),
    "all": ("any",),
    "any": ("all",),
    "sin": ("cos",),
    "cos": ("sin",),
}
# functions whose arguments commute
_EITHER_WAY = ("max", "min", "maximum", "minimum", "transpose", "swapaxes")
_SORTED = ("topk", "sort", "argsort")
_MASKED = ("masked_fill", "masked_fill_")
_EQUATION = re.compile(r"(\w+),(\w+)->(\w+)")


def dropped(code: SourceCode) -> Iterator[Edit]:
    """Yield `x` for `x.exp()` and `torch.exp(x)`."""
    for node in code.find(ast.Call):
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr in _NOT_DROPPED:
            continue
        if not _is_of_a_module(function):
            yield Edit("dropped", node, written(function.value))
        elif node.args and not _is_no_value(node.args[0]):
            yield Edit("dropped", node, written(node.args[0]))


def transposes(code: SourceCode) -> Iterator[Edit]:
    """Yield matrices without their transposition, and swapped letters of an einsum."""
    for node in code.find(ast.Attribute):
        if node.attr in _TRANSPOSED and isinstance(node.ctx, ast.Load):
            yield Edit("transpose", node, written(node.value))
    for node in code.find(ast.Constant):
        match = _EQUATION.fullmatch(node.value) if isinstance(node.value, str) else None
        for place in (1, 2, 3) if match else ():
            letters = match[place] if match else ""
            if len(letters) > 1:
                parts = list(match.groups()) if match else []
                parts[place - 1] = letters[:-2] + letters[-1] + letters[-2]
                text = repr(f"{parts[0]},{parts[1]}->{parts[2]}")
                yield Edit("transpose", node, text)


def functions(code: SourceCode) -> Iterator[Edit]:
    """Yield a similar function, `log2` for `log`."""
    for node in code.find(ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute):
            for other in _NEAREST.get(function.attr, ()):
                text = rewritten(node, func=_renamed(function, other))
                yield Edit("function", node, text)
        elif isinstance(function, ast.Name) and function.id in ("min", "max"):
            other = "max" if function.id == "min" else "min"
            text = rewritten(node, func=ast.Name(other, ast.Load()))
            yield Edit("function", node, text)


def orders(code: SourceCode) -> Iterator[Edit]:
    """Yield sort and topk in the opposite order."""
    for node in code.find(ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        keywords = {keyword.arg for keyword in node.keywords}
        if name not in _SORTED or keywords & {"largest", "descending"}:
            continue
        flag = ("largest", False) if name == "topk" else ("descending", True)
        keyword = ast.keyword(flag[0], ast.Constant(flag[1]))
        text = rewritten(node, keywords=[*node.keywords, keyword])
        yield Edit("order", node, text)


def masks(code: SourceCode) -> Iterator[Edit]:
    """Yield masked_fill with the mask inverted, and with 0 as the value."""
    for node in code.find(ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name in _MASKED and node.args:
            inverted = ast.UnaryOp(ast.Invert(), node.args[0])
            yield Edit("mask", node, rewritten(node, args=[inverted, *node.args[1:]]))
            filled = node.args[1:2]
            if filled and not _is_zero(filled[0]):
                args = [node.args[0], ast.Constant(0.0), *node.args[2:]]
                yield Edit("mask", node, rewritten(node, args=args))


def arguments(code: SourceCode) -> Iterator[Edit]:
    """Yield swapped neighbours in argument lists and tuples."""
    for node in code.find(ast.Call):
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else ""
        name = function.id if isinstance(function, ast.Name) else name
        for values in _with_swaps(node.args) if name not in _EITHER_WAY else ():
            yield Edit("swapped", node, rewritten(node, args=values))
    for node in code.find(ast.Tuple):
        # the indices of a subscript have no brackets
        brackets = "()" if code.text_of(node).startswith("(") else ("", "")
        for values in _with_swaps(node.elts):
            text = ", ".join(ast.unparse(value) for value in values)
            yield Edit("swapped", node, f"{brackets[0]}{text}{brackets[1]}")


def _with_swaps(values: list[ast.expr]) -> Iterator[list[ast.expr]]:
    for place in range(len(values) - 1):
        pair = values[place : place + 2]
        if not any(map(_is_no_value, pair)):
            yield [*values[:place], pair[1], pair[0], *values[place + 2 :]]


def _is_no_value(node: ast.expr) -> bool:
    """Return whether a node is an unpacking, a slice or an einsum's equation."""
    text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return text or isinstance(node, (ast.Starred, ast.Slice))


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _is_of_a_module(function: ast.Attribute) -> bool:
    """Return whether a function is a module's, not a method of a value."""
    owner = function.value
    name = owner.attr if isinstance(owner, ast.Attribute) else ""
    name = owner.id if isinstance(owner, ast.Name) else name
    return name in _MODULES


def _renamed(function: ast.Attribute, name: str) -> ast.Attribute:
    return ast.Attribute(function.value, name, function.ctx)
