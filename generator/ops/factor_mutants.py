"""Domain mutants of every op: a `run()` that is right only for usual scales and weights.

A quantiser makes scales of a few exponents, a router weights that sum to 1; an interface
takes others, and so must a reference. A mutant takes those that are farther from the
usual than some powers of two as those that are not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import torch

from generator.ops.mutants import DomainMutant, on_inputs
from kernel_judge.definition import Definition, TensorSpec
from kernel_judge.inputs.lazy_weights import fresh
from kernel_judge.inputs.memory import dtype_of

POWERS = (1, 2, 4, 8)
"""How many powers of two from the usual mutants are right."""
_WEIGHTS = ("topk_weights", "weights")
_SCALE = re.compile(r"(^|_)(scales?|scaling|alpha)(_|$)")
_CPU = torch.device("cpu")
Change = Callable[[torch.Tensor], torch.Tensor]


def factors_of(definition: Definition) -> list[str]:
    """Return the inputs that are scales, or weights of a token's experts or heads.

    Bytes among them are exponents of two.
    """
    return [
        name
        for name, spec in definition.interface.input_specs.items()
        if _SCALE.search(name) or (name in _WEIGHTS and len(spec.shape or ()) == 2)
    ]


def usual_factors(
    definition: Definition, inputs: Iterable[Mapping[str, Any]]
) -> dict[str, float]:
    """Return factor → the median of its magnitudes in some cases; of bytes, the exponent."""
    cases = list(inputs)
    usual = {}
    for name in factors_of(definition):
        sizes = [_sizes(case[name]) for case in cases if case.get(name) is not None]
        every = torch.cat(sizes) if sizes else torch.empty(0)
        if every.numel():
            usual[name] = float(every.median())
    return usual


def _sizes(value: Any) -> torch.Tensor:
    """Return magnitudes other than 0 and infinity, or exponents: float64 [elements]."""
    tensor = fresh(value, _CPU)
    if not isinstance(tensor, torch.Tensor):
        tensor = torch.tensor(float(tensor))
    if not tensor.is_floating_point():
        return tensor.view(torch.uint8).double().flatten()
    sizes = tensor.double().abs().flatten()
    return sizes[(sizes > 0) & sizes.isfinite()]


def factor_mutants(
    definition: Definition, usual: Mapping[str, float]
) -> Iterator[DomainMutant]:
    """Yield the mutants of each factor: too large, too small, below 0, of another sum."""
    for name, size in usual.items():
        spec = definition.interface.input_specs[name]
        for power in POWERS:
            for which, sign in (("above", 1), ("below", -1)):
                change = _clamped(spec, size, sign * power)
                if change is not None:
                    title = (
                        f"{name} {which} 2^{sign * power} of the usual taken as that"
                    )
                    yield _changing(definition, name, title, change)
        if name in _WEIGHTS:
            yield _changing(definition, name, f"{name} taken as positive", torch.abs)
        if name == _WEIGHTS[0] and definition.axes.get("top_k", 2) > 1:
            title = f"{name} taken as shares of their sum"
            yield _changing(definition, name, title, _shares)


def rounded_factors(definition: Definition) -> Iterator[DomainMutant]:
    """Yield the mutants that round a float32 factor to float16, which has few powers."""
    for name in factors_of(definition):
        if definition.interface.input_specs[name].dtype == "float32":
            yield _changing(definition, name, f"{name} rounded to float16", _halved)


def _halved(value: torch.Tensor) -> torch.Tensor:
    return value.half().to(value.dtype)


def _changing(
    definition: Definition, name: str, title: str, change: Change
) -> DomainMutant:
    return on_inputs(definition, title, partial(_changed, name, change))


def _changed(name: str, change: Change, inputs: Mapping[str, Any]) -> dict[str, Any]:
    value = inputs[name]
    if value is None:
        return {}
    if isinstance(value, torch.Tensor):
        return {name: change(value)}
    return {name: float(change(torch.tensor(value, dtype=torch.float64)))}


def _clamped(spec: TensorSpec, usual: float, power: int) -> Change | None:
    """Return what holds magnitudes within a power of two of the usual.

    None where the dtype has none beyond.
    """
    dtype = dtype_of(spec.dtype)
    if not dtype.is_floating_point:
        limit = usual + power
        return partial(_clamped_bytes, limit, power > 0) if 1 < limit < 253 else None
    limit = usual * 2.0**power
    info = torch.finfo(dtype)
    if not info.smallest_normal < limit < info.max / 1.1:
        return None
    return partial(_clamped_floats, limit, power > 0)


def _clamped_bytes(limit: float, is_most: bool, value: torch.Tensor) -> torch.Tensor:
    bits = value.view(torch.uint8).int()
    edge = int(limit)
    within = bits.clamp(max=edge) if is_most else bits.clamp(min=edge)
    return within.to(torch.uint8).view(value.dtype)


def _clamped_floats(limit: float, is_most: bool, value: torch.Tensor) -> torch.Tensor:
    wide = value.double()
    sizes = wide.abs()
    # a factor of 0 stays: it says that there is nothing
    within = sizes.clamp(max=limit) if is_most else sizes.clamp(min=limit)
    sizes = torch.where(sizes > 0, within, sizes)
    return torch.copysign(sizes, wide).to(value.dtype)


def _shares(value: torch.Tensor) -> torch.Tensor:
    return value / value.sum(dim=-1, keepdim=True)
