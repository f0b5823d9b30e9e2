"""Run a reference in float64: the same `run()`, with float64 in place of float32.

Under `Widened`, tensors that a reference creates in float32 or casts to it are float64,
and so is all arithmetic on them. Float32 inputs are widened before the call, which is
exact. `x.dtype` of a widened tensor still returns float32, so that assertions hold.

16-bit tensors stay 16-bit: inputs have these values, and an intermediate rounding (to
fp8 between two products, of a sum to bfloat16) is part of the definition. Every
operation with a 16-bit result is computed in float64 and rounded once. The values before
rounding are kept beside the tensor, follow it through moves, and replace it as an
output, so that the output's own rounding can be separated from the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from generator.mutation.tolerances.unrounded import NARROW, Unrounded, is_narrow

_WIDER = {torch.float32: torch.float64, torch.complex64: torch.complex128}
_REPORTED = {wide: narrow for narrow, wide in _WIDER.items()}
_Tensor = torch.Tensor
_DTYPE = _Tensor.dtype.__get__  # type: ignore[attr-defined]
_NARROWING = (_Tensor.bfloat16, _Tensor.half)
# by name: torch has several functions of most names
_MOVES = """
    cat concat concatenate stack hstack vstack clone contiguous reshape flatten ravel
    __getitem__ index_select gather take take_along_dim where masked_fill repeat
    repeat_interleave tile flip roll pad masked_select scatter index_copy
"""
_WRITES = """
    __setitem__ copy_ index_copy_ index_put_ masked_fill_ masked_scatter_ scatter_ fill_
    zero_ index_fill_
"""
_CREATE = """
    zeros_like ones_like full_like empty_like new_zeros new_ones new_full new_empty
    zeros ones full empty eye rand randn rand_like randn_like bernoulli dropout
"""
_IN_PLACE = "__iadd__ __isub__ __imul__ __itruediv__ __ipow__"
_KINDS = {
    name: kind
    for kind, names in (
        ("moves", _MOVES),
        ("writes", _WRITES),
        ("creates", _CREATE),
        ("in place", _IN_PLACE),
    )
    for name in names.split()
}


class Widened(TorchFunctionMode):
    """A block in which code that computes in float32 computes in float64."""

    def __init__(self) -> None:
        super().__init__()
        self.unrounded = Unrounded()
        # tensors that the reference itself made float64
        self._double: dict[int, torch.Tensor] = {}
        self._default = torch.get_default_dtype()

    def __enter__(self) -> Widened:  # noqa: PYI034
        """Make float64 the default dtype as well, and intercept calls of torch."""
        self._default = torch.get_default_dtype()
        torch.set_default_dtype(_WIDER.get(self._default, self._default))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *raised: object) -> None:
        """Restore the default dtype, whatever was raised."""
        super().__exit__(*raised)  # type: ignore[no-untyped-call]
        torch.set_default_dtype(self._default)

    def given(self, value: Any) -> Any:
        """Return a copy of an input, in float64 if it is float32."""
        if not isinstance(value, _Tensor):
            return value
        copy = value.to(_WIDER.get(value.dtype, value.dtype), copy=True)
        if value.dtype in _REPORTED:
            self._mark(copy)
        return copy

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call a function of torch with float64 in place of float32."""
        named = dict(kwargs or {})
        if func == _DTYPE:
            return self._reported_dtype(args[0])
        if _is_view_of_bits(func, args, named):
            # the bits of the reported float32, not of the float64
            first = args[0]
            args = (first.to(self._reported_dtype(first)), *args[1:])
            return _map(_widen, func(*args, **named))
        dtypes = [v for v in (*args, *named.values()) if isinstance(v, torch.dtype)]
        wants_double = torch.float64 in dtypes or func is _Tensor.double
        if func is _Tensor.float:
            func = _Tensor.double
        is_cast = func is _Tensor.double or bool(dtypes)
        args = tuple(_wider(value) for value in args)
        named = {name: _wider(value) for name, value in named.items()}
        result = _map(_widen, self._call(func, args, named))
        tensors = list(_tensors((args, named)))
        doubles = any(id(tensor) in self._double for tensor in tensors)
        if wants_double or (doubles and not is_cast):
            return _map(lambda value: self._marked(value, tensors), result)
        if doubles:
            return _map(lambda value: self._unmarked(value), result)
        return result

    def _call(
        self, func: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        """Call a function and keep its 16-bit results before rounding."""
        kind = _kind(func, named)
        result = func(*args, **named)
        if kind == "writes":
            self._write(func, args, named)
            return result
        if kind == "in place":
            for target in _tensors((args[:1], named.get("out"))):
                if self._knows(target):
                    # unknown before this rounding: continue with the rounded values
                    self.unrounded.begin(target).copy_(target.double())
            return result
        if kind == "creates" or not any(map(is_narrow, _tensors(result))):
            return result
        places = {t.untyped_storage().data_ptr() for t in _tensors((args, named))}
        if any(t.untyped_storage().data_ptr() in places for t in _tensors(result)):
            return result  # a view: its storage is known
        return self._rounded(func, kind == "moves", result, args, named)

    def _write(
        self, func: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        """Repeat a write to a 16-bit tensor on its values before rounding."""
        target, *rest = args
        if not is_narrow(target):
            return
        sources = list(_tensors((rest, named)))
        wide = [s for s in sources if s.dtype == torch.float64 or self._knows(s)]
        if not wide and self.unrounded.of(target) is None:
            return
        before = self.unrounded.begin(target)
        more = {name: self._before(value) for name, value in named.items()}
        func(before, *(self._before(value) for value in rest), **more)

    def _rounded(
        self,
        func: Callable[..., Any],
        moves: bool,
        result: Any,
        args: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Any:
        """Return 16-bit results as one rounding of the float64 results."""
        if moves and not any(map(self._knows, _tensors((args, named)))):
            return result
        exact = self._before if moves else _doubled
        more = {name: _no_narrow(exact(value)) for name, value in named.items()}
        wide_args = tuple(_no_narrow(exact(value)) for value in args)
        wider = _Tensor.double if func in _NARROWING else func
        wide: list[torch.Tensor] = []
        # not every operation on float8 exists for float64
        with suppress(Exception):
            wide = list(_tensors(wider(*wide_args, **more)))
        if [t.shape for t in wide] != [t.shape for t in _tensors(result)]:
            return result
        before = iter(wide)

        def rounded(value: torch.Tensor) -> torch.Tensor:
            wide = next(before)
            if not is_narrow(value) or wide.dtype != torch.float64:
                return value
            once = wide.to(value.dtype)
            self.unrounded.begin(once).copy_(wide)
            return once

        return _map(rounded, result)

    def _knows(self, tensor: torch.Tensor) -> bool:
        return is_narrow(tensor) and self.unrounded.of(tensor) is not None

    def _before(self, value: Any) -> Any:
        """Return an argument with its 16-bit tensors before rounding, in float64."""

        def known(tensor: torch.Tensor) -> torch.Tensor:
            if not is_narrow(tensor):
                return tensor
            exact = self.unrounded.of(tensor)
            return tensor.double() if exact is None else exact

        return _map(known, value)

    def _reported_dtype(self, tensor: torch.Tensor) -> torch.dtype:
        """Return the dtype that the reference sees."""
        dtype = _plain_dtype(tensor)
        return dtype if id(tensor) in self._double else _REPORTED.get(dtype, dtype)

    def _mark(self, tensor: torch.Tensor) -> None:
        # keep the tensor alive, so that its id is not reused
        self._double[id(tensor)] = tensor

    def _marked(
        self, value: torch.Tensor, operands: list[torch.Tensor]
    ) -> torch.Tensor:
        """Return a result marked as float64 by the reference's own choice."""
        if value.dtype not in _REPORTED or id(value) in self._double:
            return value
        if any(value is one for one in operands):
            if len(operands) > 1:
                # an in-place operation keeps the dtype of its target
                return value
            value = value.detach()
        self._mark(value)
        return value

    def _unmarked(self, value: torch.Tensor) -> torch.Tensor:
        return value.detach() if id(value) in self._double else value


def run_widened(
    load: Callable[[], Callable[..., Any]], inputs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the outputs of a reference in float64, and the inputs after the call.

    `load` executes the reference's source and returns its `run()`. Raises what the
    reference raises.
    """
    mode = Widened()
    entered = {name: mode.given(value) for name, value in inputs.items()}
    with mode:
        returned = load()(*entered.values())
    outputs = returned if isinstance(returned, (tuple, list)) else (returned,)
    return (
        tuple(mode.unrounded.final(value) for value in outputs),
        {name: mode.unrounded.final(value) for name, value in entered.items()},
    )


def _plain_dtype(tensor: torch.Tensor) -> torch.dtype:
    with torch._C.DisableTorchFunction():
        return tensor.dtype


def _is_view_of_bits(
    func: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]
) -> bool:
    return func is _Tensor.view and _has_dtype(args[1:], named)


def _kind(func: Callable[..., Any], named: Mapping[str, Any]) -> str:
    """Return how a function treats 16-bit tensors, empty if it computes new values."""
    name = getattr(func, "__name__", "")
    in_place = name.endswith("_") and not name.endswith("__")
    unknown = "in place" if in_place or named.get("out") is not None else ""
    return _KINDS.get(name, unknown)


def _has_dtype(args: tuple[Any, ...], named: Mapping[str, Any]) -> bool:
    return any(isinstance(value, torch.dtype) for value in (*args, *named.values()))


def _wider(value: Any) -> Any:
    return _WIDER.get(value, value) if isinstance(value, torch.dtype) else value


def _no_narrow(value: Any) -> Any:
    narrow = isinstance(value, torch.dtype) and value in NARROW
    return torch.float64 if narrow else value


def _widen(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(_WIDER.get(tensor.dtype, tensor.dtype))


def _doubled(value: Any) -> Any:
    return _map(lambda t: t.double() if is_narrow(t) else t, value)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of a value, also in lists, tuples and dicts."""
    if isinstance(value, _Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _tensors(part)
    elif isinstance(value, dict):
        yield from _tensors(tuple(value.values()))


def _map(change: Callable[[torch.Tensor], torch.Tensor], value: Any) -> Any:
    """Return a value with its tensors changed, the value itself if none changes."""
    if isinstance(value, _Tensor):
        return change(value)
    if not isinstance(value, (tuple, list)):
        return value
    parts = [_map(change, part) for part in value]
    if all(new is old for new, old in zip(parts, value, strict=True)):
        return value
    if hasattr(value, "_fields"):
        return type(value)(*parts)
    return type(value)(parts)
