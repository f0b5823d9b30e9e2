"""Where every tensor's bits come from while an adapter runs.

Every tensor has an origin: a definition's input or a copy of its bits, index arithmetic, an
allocation, or a computation, which is what an adapter must not do. The origin belongs to
the memory, so that views have it too.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_flatten

from generator.ops.registry import op_folder
from kernel_judge.definition import Definition

INPUT, COPY, PLAN, ALLOCATED, PYTHON = "input", "copy", "plan", "allocated", "python"
ORDERED = "bits in an order that is computed"
_PLAIN = (INPUT, COPY, PLAN, ALLOCATED, PYTHON)
"""Origins of memory; any other one is the operation that computed its values.

A kernel may not be handed what is ordered by a computation; of a kernel's answers the
values are its own in any order.
"""

_ALLOCATE = [
    "empty",
    "empty_like",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "zeros",
    "zeros_like",
    "new_zeros",
    "ones",
    "ones_like",
    "new_ones",
    "full",
    "full_like",
    "new_full",
    "arange",
    "scalar_tensor",
]
# they carry bits from one place to another
_MOVE = [
    "clone",
    "contiguous",
    "cat",
    "stack",
    "index",
    "index_select",
    "gather",
    "take",
    "repeat",
    "flip",
    "roll",
    "constant_pad_nd",
    "expand_copy",
    "permute_copy",
    "view_copy",
    "slice_scatter",
    "select_scatter",
    "repeat_interleave",
    "_to_copy",
    "masked_select",
    "unfold_copy",
    "_unsafe_index",
    "tril",
    "triu",
    "split_with_sizes_copy",
]
# the same, into memory that is there: (what is written, what selects the place)
_BY_INDEX = ("index", "index_select", "gather", "take", "masked_select")
_WRITE = ("copy_", "index_put_", "scatter_", "index_copy_", "_index_put_impl_", "set_")
_FILL = ("zero_", "fill_")
_INTEGERS = (torch.int16, torch.int32, torch.int64, torch.bool)
# methods of a kernel's answer that leave its values as they are
SELECTING = frozenset(
    [
        "to",
        "float",
        "double",
        "half",
        "bfloat16",
        "int",
        "long",
        "view",
        "reshape",
        "permute",
        "transpose",
        "contiguous",
        "unsqueeze",
        "squeeze",
        "flatten",
        "unflatten",
        "clone",
        "detach",
        "cpu",
        "expand",
        "expand_as",
        "T",
        "t",
        "view_as",
        "reshape_as",
        "movedim",
        "unbind",
        "chunk",
        "split",
        "narrow",
        "select",
        "size",
        "dim",
        "numel",
        "type",
        "__getitem__",
        "swapaxes",
        "cuda",
        "copy_",
        "stack",
        "cat",
        "new_empty",
        "empty_like",
    ]
)


@dataclass
class Handed:
    """Hold what an adapter computed: of what a kernel was handed, and of its answers."""

    inputs: set[str] = field(default_factory=set)
    outputs: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)


class Watch(TorchDispatchMode):
    """Follow where the bits of every tensor come from while an adapter runs."""

    def __init__(self, definition: Definition, inputs: Mapping[str, Any]) -> None:
        super().__init__()
        self.handed = Handed()
        self.axes = {**definition.axes, **definition.constants}
        self._origins: dict[int, str] = {}
        # memory that is given back could come again as another tensor's
        self._alive: list[torch.Tensor] = []
        self._scalars = {0.0, 1.0, -1.0, math.inf, -math.inf, *_literals(definition)}
        # the default scale of attention, and means
        sizes = [n for n in definition.axes.values() if n]
        sizes += [one * other for one in sizes for other in sizes]
        self._scalars |= {f(n) for n in sizes for f in _OF_AXES}
        for value in (*inputs.values(), *definition.constants.values()):
            self._scalars |= _numbers(value)
        for value in inputs.values():
            if isinstance(value, torch.Tensor):
                self._set(value, INPUT)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run an operation and record the origin of what it made or wrote."""
        kwargs = kwargs or {}
        given = [t for t in tree_flatten((args, kwargs))[0] if _is_tensor(t)]
        known = {_key(t) for t in given}
        returned = func(*args, **kwargs)
        made = [t for t in tree_flatten(returned)[0] if _is_tensor(t)]
        name = func._schema.name.removeprefix("aten::")
        for number, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                named = kwargs.get(argument.name)
                written = args[number] if number < len(args) else named
                if _is_tensor(written):
                    self._write(name, written, given)
        for tensor in made:
            if _key(tensor) not in known:
                self._set(tensor, self._made(name, given, args, tensor))
        return returned

    def release(self) -> None:
        """Let go of all tensors: answers that refer to this in a circle outlive the call."""
        self._alive.clear()
        self._origins.clear()

    def origin(self, tensor: torch.Tensor) -> str:
        """Return where a tensor's bits come from; Python's if no operation made it."""
        return self._origins.get(_key(tensor), PYTHON)

    def hand(self, where: str, *values: Any) -> None:
        """Check what is handed to a provider at a place, `flashinfer.norm.rmsnorm`."""
        self.handed.calls.append(where)
        for value in _leaves(values):
            found = self._computed(value)
            if found:
                self.handed.inputs.add(f"{where}: {found}")
            if _is_tensor(value) and self.origin(value) == ALLOCATED:
                with _disable_current_modes():
                    self._fill(value)

    @staticmethod
    def _fill(tensor: torch.Tensor) -> None:
        """Write zeros, as a kernel writes its answer: nobody may read leftover memory."""
        if tensor.dtype != torch.uint8:
            tensor.zero_()

    def answer(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor as a kernel's answer: its bits are nobody else's."""
        self._set(tensor, COPY)
        return tensor

    def answered(self, returned: Any) -> None:
        """Check what an adapter returns."""
        for value in _leaves((returned,)):
            if isinstance(value, torch.Tensor):
                origin = self.origin(value)
                if origin not in (INPUT, COPY, ALLOCATED, ORDERED):
                    self.handed.outputs.add(f"output: {origin}")

    def _computed(self, value: Any) -> str:
        """Return what an adapter computed of a value, empty for what is not computed."""
        if isinstance(value, torch.Tensor):
            origin = self.origin(value)
            floats = value.is_floating_point()
            if origin == PYTHON and floats:
                foreign = _numbers(value) - self._scalars
                return f"numbers {sorted(foreign)[:3]}" if foreign else ""
            if origin == PLAN and floats:
                return "numbers out of integers"
            return "" if origin in _PLAIN else origin
        if isinstance(value, float) and not math.isnan(value):
            return "" if {value} <= self._scalars else f"number {value:.6g}"
        return ""

    def _set(self, tensor: torch.Tensor, origin: str) -> None:
        self._origins[_key(tensor)] = origin
        self._alive.append(tensor)

    def _write(self, name: str, target: torch.Tensor, given: list[Any]) -> None:
        """Record that an operation wrote to memory."""
        before = self.origin(target)
        others = [t for t in given if t is not target]
        origins = {self.origin(t) for t in others}
        if name in _FILL:
            after = before if before in (ALLOCATED, PLAN) else name
        elif name in _WRITE and before not in (INPUT,):
            lossless = name != "copy_" or all(_holds(t, target) for t in others)
            after = self._moved(origins | {before}) if lossless else "rounding"
        elif target.dtype in _INTEGERS and self._is_plan([target, *others]):
            after = PLAN
        else:
            after = name
        self._set(target, after)

    def _made(
        self, name: str, given: list[torch.Tensor], args: Any, tensor: torch.Tensor
    ) -> str:
        """Return the origin of memory that an operation made."""
        origins = {self.origin(t) for t in given}
        if name in _BY_INDEX and not {self.origin(t) for t in given[1:]} <= {*_PLAIN}:
            plain = self.origin(given[0]) in (*_PLAIN, ORDERED)
            return ORDERED if plain else self.origin(given[0])
        if name in _ALLOCATE or not given:
            return ALLOCATED
        if name == "lift_fresh":
            return PYTHON
        if name == "_to_copy" and not _holds(given[0], tensor):
            return PLAN if self._is_plan([*given, tensor]) else "rounding"
        if name in _MOVE:
            return self._moved(origins)
        if tensor.dtype in _INTEGERS and self._is_plan(given):
            return PLAN
        return name

    def _moved(self, origins: set[str]) -> str:
        """Return the origin of bits that come from others and go where these say."""
        computed = origins - {*_PLAIN}
        if computed:
            return min(computed)
        if origins & {INPUT, COPY}:
            return COPY
        order = (PLAN, PYTHON, ALLOCATED)
        return next(origin for origin in order if origin in origins)

    def _is_plan(self, tensors: list[torch.Tensor]) -> bool:
        """Return whether integers come from integers: index arithmetic."""
        return all(t.dtype in _INTEGERS and self.origin(t) in _PLAIN for t in tensors)


_OF_AXES: tuple[Callable[[int], float], ...] = (
    lambda n: 1.0 / n,
    lambda n: n**-0.5,
)


@cache
def _numbers_in(op_type: str) -> frozenset[float]:
    """Return the numbers in the sources of an op_type: constants of its kernels."""
    found = set()
    for path in op_folder(op_type).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and type(node.value) is float:
                found.add(node.value)
    return frozenset(found)


def _literals(definition: Definition) -> frozenset[float]:
    return _numbers_in(definition.op_type)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _key(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _holds(source: torch.Tensor, target: torch.Tensor) -> bool:
    """Return whether a copy in another dtype has the same values."""
    if source.dtype == target.dtype:
        return True
    if source.shape != target.shape:
        source = source.expand(target.shape)
    back = target.to(source.dtype)
    same = (back == source) | (back.isnan() & source.isnan())
    return bool(same.all())


def _numbers(value: Any) -> set[float]:
    """Return the numbers of a scalar, a small tensor or a sequence; also as float32."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return {float(value), float(torch.tensor(float(value), dtype=torch.float32))}
    if isinstance(value, torch.Tensor) and value.numel() <= 1024:
        return {float(v) for v in value.detach().double().flatten().tolist()}
    if isinstance(value, (list, tuple)):
        return {n for v in value for n in _numbers(v)}
    return set()


def _leaves(value: Any) -> Iterator[Any]:
    """Yield the values inside of arguments, also those of namespaces."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))
    elif isinstance(value, SimpleNamespace):
        yield from _leaves(list(vars(value).values()))
    elif isinstance(value, torch.nn.Module):
        yield from _leaves([*value.parameters(), *value.buffers()])
    else:
        yield value
