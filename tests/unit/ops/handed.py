"""What an adapter hands to a kernel: FlashInfer and SGLang are modules that record."""

from __future__ import annotations

import dis
import importlib.machinery
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten

from kernel_judge.definition import Definition
from tests.unit.ops.origins import SELECTING, Handed, Watch

PROVIDERS = ("flashinfer", "sglang", "triton", "sgl_kernel")


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
        if name in SELECTING:
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
        if name in SELECTING or name.startswith(("empty", "zeros")):
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
    "moe_fused_gate": _routing,
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
        watch.release()
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
