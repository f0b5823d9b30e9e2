"""Sizes and tensors of a trace template that has no `init`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

UNKNOWN = torch.complex32
"""What stands for a dtype that a template does not say; no kernel takes it."""
REQUIRED = (8, 4)
"""The sizes to try for an axis that nothing gives: batches of four divide them."""
_CONSTANT = 128
_ELEMENTS = 2**24
_TRIES = 3
# "2 * intermediate_size", "hidden_size // 2", "ceil(hidden_size / 128)"
_PRODUCT = re.compile(r"\b(\w+) ?(\*|//?|\+) ?(\w+)\b")
_CEILING = re.compile(r"\bceil\((\w+) / (\d+)\)")
# "hidden dim (6144)", of a constant axis
_NUMBER = re.compile(r"\((\d+)\)")
_CEILED = re.compile(r"\((\w+) \+ (\d+) - 1\) // \d+")
_INDICES = re.compile(r"(indptr|indices|ids|lens?|tables?|positions|experts)$")


def stated(template: Any) -> dict[str, str]:
    """Return axis → the size, or the expression over other axes, that its description states.

    One that states two, "X // 2 or X", states none.
    """
    constants = {}
    for name, axis in template.axes.items():
        text = getattr(axis, "description", None) or ""
        ceiling, product = _CEILING.search(text), _PRODUCT.search(text)
        if ceiling is not None:
            size, part = ceiling.groups()
            expression, operands = f"({size} + {part} - 1) // {part}", [size]
        elif product is not None:
            left, operator, right = product.groups()
            operator = operator.replace("//", "/").replace("/", "//")
            expression, operands = f"{left} {operator} {right}", [left, right]
        elif hasattr(axis, "abbrev") and (number := _NUMBER.search(text)):
            constants[name] = number[1]
            continue
        else:
            continue
        axes = [o for o in operands if not o.isdigit()]
        if axes and {*axes} <= {*template.axes} - {name} and " or " not in text:
            constants[name] = expression
    return constants


def sizes_of(
    template: Any, given: Mapping[str, int], usual: Mapping[str, int]
) -> dict[str, int]:
    """Return axis → size: what is given, fixed or stated, else a usual one."""
    names = [n for d in template.inputs.values() for n in getattr(d, "dim_names", ())]
    sizes: dict[str, int] = {}
    for name in (*template.axes, *names):
        axis = template.axes.get(name)
        fixed = given.get(name) or getattr(axis, "value", None)
        free = REQUIRED[0] + name.endswith("plus_1")
        constant = usual.get(name, _CONSTANT)
        sizes[name] = fixed or (constant if hasattr(axis, "abbrev") else free)
    for name in sizes:
        whole = name.removesuffix("_padded")
        if whole != name and whole in sizes and name not in given:
            sizes[name] = sizes[whole]
    # twice, for one may be stated by another that is stated
    for name, expression in [*stated(template).items()] * 2:
        if name not in given and not getattr(template.axes[name], "value", None):
            sizes[name] = _evaluated(expression, sizes)
    return sizes


def _evaluated(expression: str, sizes: Mapping[str, int]) -> int:
    """Return the value of what `stated` returns."""
    if expression.isdigit():
        return int(expression)
    ceiling = _CEILED.fullmatch(expression)
    if ceiling is not None:
        return -(-sizes[ceiling[1]] // int(ceiling[2]))
    left, operator, right = expression.split(" ")
    a, b = (int(n) if n.isdigit() else sizes[n] for n in (left, right))
    return a * b if operator == "*" else a // b if operator == "//" else a + b


def tensors(
    template: Any,
    sizes: Mapping[str, int],
    stated: Mapping[str, int],
    needed: tuple[str, ...] = (),
    make: Callable[..., torch.Tensor] | None = None,
) -> dict[str, Any]:
    """Return argument → tensor without memory, of the dtype that the template names.

    Optional inputs are left out but for those that are `needed`.
    """
    make = make or _on_meta
    made: dict[str, Any] = {}
    for key, descriptor in template.inputs.items():
        dims = getattr(descriptor, "dim_names", None)
        param = descriptor.param or key
        if descriptor.optional and key not in needed:
            continue
        if dims is None:
            if key in sizes:
                made[param] = sizes[key]
            continue
        tensor = make([sizes[d] for d in dims], descriptor.dtype, key)
        if descriptor.tuple_idx is None:
            made[param] = tensor
        else:
            held = made.setdefault(param, [])
            held += [None] * (descriptor.tuple_idx + 1 - len(held))
            held[descriptor.tuple_idx] = tensor
    return {**{n: v for n, v in sizes.items() if n in stated}, **made}


def _on_meta(shape: list[int], dtype: str | None, name: str) -> torch.Tensor:
    return torch.empty(shape, dtype=getattr(torch, dtype or "", UNKNOWN), device="meta")


def _bytes(shape: list[int], dtype: str | None, name: str) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.uint8, device="meta")


def _zeros(shape: list[int], dtype: str | None, name: str) -> torch.Tensor:
    open_dtype = torch.int32 if _INDICES.search(name) else torch.bfloat16
    return torch.zeros(shape, dtype=getattr(torch, dtype or "", open_dtype))


def _missing(template: Any) -> dict[str, Any]:
    """Return parameter → None, of the reference's that have no default."""
    parameters = inspect.signature(template.reference).parameters.values()
    return {p.name: None for p in parameters if p.default is p.empty}


def _scalars(template: Any) -> dict[str, Any]:
    """Return argument → one, of the scalars that are always passed."""
    ones = {"int32": 1, "int64": 1, "float32": 1.0, "bool": False}
    return {
        descriptor.param or key: ones.get(str(descriptor.dtype), 1)
        for key, descriptor in template.inputs.items()
        if not hasattr(descriptor, "dim_names") and not descriptor.optional
    }


def tried(
    template: Any,
    sizes: Mapping[str, int],
    stated: Mapping[str, int],
    call: Callable[[Mapping[str, Any]], list[Any] | None],
) -> tuple[list[Any] | None, tuple[str, ...]]:
    """Return what the reference returns for zeros, and the optional inputs it wants.

    `call` calls it; None where zeros say nothing, or would take much memory.
    """
    needed: tuple[str, ...] = ()
    if template.reference is None:
        return None, ()
    for _ in range(_TRIES):
        shapes = tensors(template, sizes, stated, needed, _bytes).values()
        count = sum(v.numel() for v in shapes if isinstance(v, torch.Tensor))
        if count > _ELEMENTS:
            break
        try:
            arguments = tensors(template, sizes, stated, needed, _zeros)
            return call(
                {**_missing(template), **_scalars(template), **arguments}
            ), needed
        except Exception as error:  # noqa: BLE001
            wanted = tuple(_named(template, str(error), needed))
            if not wanted:
                break
            needed += wanted
    return None, needed


def _named(template: Any, message: str, needed: tuple[str, ...]) -> Iterator[str]:
    """Yield the optional inputs that a message says are required."""
    for key, descriptor in template.inputs.items():
        if (
            descriptor.optional
            and key not in needed
            and f"{key} is required" in message
        ):
            yield key
