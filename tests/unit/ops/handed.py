"""What an adapter hands to a kernel, and how it came by it.

FlashInfer and SGLang are modules that record. Every tensor that exists while an adapter
runs has an origin: a definition's input or a copy of its bits, index arithmetic, an
allocation, or a computation, which is what an adapter must not do. The origin belongs to
the memory, so that views have it too.
"""

from __future__ import annotations

import ast
import dis
import importlib.machinery
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_flatten

from generator.ops.registry import op_folder
from generator.testing.definition import Definition

PROVIDERS = ("flashinfer", "sglang", "triton", "sgl_kernel")

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
_SELECT = frozenset(
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


class Answer:
    """Stand for whatever a provider has or returns: a function, a layer, a tensor."""

    def __init__(self, watch: Watch, where: str) -> None:
        object.__setattr__(self, "_watch", watch)
        object.__setattr__(self, "_where", where)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "shape":
            return (1,) * 8
        if name == "device":
            return torch.device("cpu")
        return Answer(self._watch, f"{self._where}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        self._watch.hand(f"{self._where}.{name}", value)
        object.__setattr__(self, name, value)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        own, _, name = self._where.rpartition(".")
        if name in _SELECT:
            return Answer(self._watch, own)
        if own.endswith("()") and hasattr(torch.Tensor, name):
            return self._computes(name, own)
        self._watch.hand(self._where, arguments, keywords)
        made = LAYOUTS.get(name)
        if made is not None:
            with _disable_current_modes():
                return made(self._watch, *arguments, **keywords)
        return Answer(self._watch, f"{self._where}()")

    def _computes(self, name: str, where: str) -> Answer:
        self._watch.handed.outputs.add(f"{where}: {name}")
        return Answer(self._watch, where)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Let torch's functions take it."""
        first = next(a for a in tree_flatten((args, kwargs or {}))[0] if type(a) is cls)
        name = getattr(func, "__name__", str(func))
        if name in _SELECT or name.startswith(("empty", "zeros")):
            return Answer(first._watch, first._where)
        return first._computes(name, first._where)

    def __iter__(self) -> Iterator[Any]:
        """Yield as many values as the caller unpacks."""
        frame = sys._getframe(1)
        for instruction in dis.get_instructions(frame.f_code):
            if instruction.offset == frame.f_lasti:
                count = instruction.argval
                if instruction.opname == "UNPACK_SEQUENCE":
                    return iter([Answer(self._watch, self._where)] * int(count))
                if instruction.opname == "UNPACK_EX":
                    least = (count & 0xFF) + (count >> 8)
                    return iter([Answer(self._watch, self._where)] * (least + 1))
        return iter([Answer(self._watch, self._where)])

    def __getitem__(self, key: Any) -> Any:
        return Answer(self._watch, self._where)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._watch.hand(f"{self._where}[]", value)

    def __len__(self) -> int:
        return 1

    def __bool__(self) -> bool:
        return True

    def __int__(self) -> int:
        return 1

    __index__ = __int__

    def __float__(self) -> float:
        return 1.0

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return (object,)


def _operator(name: str) -> Callable[..., Answer]:
    def compute(self: Answer, *others: Any) -> Answer:
        return self._computes(name, self._where)

    return compute


for _name in [
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "rtruediv",
    "pow",
    "rpow",
    "neg",
    "matmul",
    "rmatmul",
    "floordiv",
    "mod",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
    "invert",
    "iadd",
    "isub",
    "imul",
    "itruediv",
    "lt",
    "le",
    "gt",
    "ge",
]:
    setattr(Answer, f"__{_name}__", _operator(_name))


def _routing(watch: Watch, *given: Any, **keywords: Any) -> Any:
    """Return a router's weights and experts: float32 and int32 [tokens, top_k]."""
    tokens = len(given[0])
    top_k = next(n for n in given if type(n) is int)
    experts = torch.arange(top_k, dtype=torch.int32).expand(tokens, top_k).clone()
    weights = torch.full((tokens, top_k), 1.0 / top_k)
    return watch.answer(weights), watch.answer(experts)


def _rows_of(watch: Watch, layer: Any, x: Any, *others: Any, **keywords: Any) -> Any:
    """Return an answer of the shape of what experts were handed."""
    return watch.answer(torch.zeros_like(x))


def _same(watch: Watch, tensor: Any, *others: Any, **keywords: Any) -> Any:
    """Return a tensor that the provider lays out anew: its bits, in another order."""
    return tensor


def _rows(watch: Watch, cache: Any, matrix: Any, *others: Any, **keywords: Any) -> Any:
    """Return an order of a matrix's rows."""
    return torch.arange(matrix.shape[0])


LAYOUTS: dict[str, Callable[..., Any]] = {
    "_maybe_get_cached_w3_w1_permute_indices": _rows,
    "get_w2_permute_indices_with_cache": _rows,
    "block_scale_interleave": _same,
    "fused_topk_torch_native": _routing,
    "biased_topk_impl": _routing,
    "biased_grouped_topk_impl": _routing,
    "kimi_k2_biased_topk_impl": _routing,
    "custom_routing_function": _routing,
    "moe_forward_native": _rows_of,
}
"""A provider's functions whose answers an adapter reads: orders of rows, routing."""


class _Finder:
    """Make modules of a provider, whatever their name, which record."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find every module of the providers."""
        if name.split(".")[0] not in PROVIDERS:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> ModuleType:
        """Make a module whose attributes are answers."""
        watch = self._watch

        class Recording(ModuleType):
            def __getattr__(self, name: str) -> Any:
                if name.startswith("__"):
                    raise AttributeError(name)
                return Answer(watch, f"{self.__name__}.{name}")

        return Recording(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: attributes are made when they are read."""


@contextmanager
def recording(definition: Definition, inputs: Mapping[str, Any]) -> Iterator[Watch]:
    """Replace the providers and follow all tensors; yield what records."""
    watch = Watch(definition, inputs)
    ours = {n: m for n, m in sys.modules.items() if n.split(".")[0] in PROVIDERS}
    for name in ours:
        del sys.modules[name]
    finder: Any = _Finder(watch)
    sys.meta_path.insert(0, finder)
    try:
        with watch:
            yield watch
    finally:
        sys.meta_path.remove(finder)
        for name in [n for n in sys.modules if n.split(".")[0] in PROVIDERS]:
            del sys.modules[name]
        sys.modules.update(ours)


def handed_by(
    adapter: Callable[..., Any],
    definition: Definition,
    inputs: Mapping[str, Any],
    backend: str,
) -> Handed:
    """Call an adapter on inputs; return what it computed."""
    with recording(definition, inputs) as watch:
        watch.answered(adapter(definition, inputs, backend))
    return watch.handed
