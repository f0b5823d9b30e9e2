"""Domain mutants of every op: a `run()` that does not know all codes of a short dtype.

Of 8 bits, floats have subnormals and a largest value, integers one more below 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from generator.ops.factor_mutants import factors_of
from generator.ops.mutants import DomainMutant, Inputs, on_inputs
from kernel_judge.definition import Definition
from kernel_judge.inputs.lazy_weights import Tiled

Change = Callable[[torch.Tensor], torch.Tensor]


def code_mutants(definition: Definition) -> Iterator[DomainMutant]:
    """Yield the mutants of each input of 8 bits whose bytes are no exponents, nor packed."""
    others = factors_of(definition)
    for name, spec in definition.interface.input_specs.items():
        changes: dict[str, Change] = {}
        if spec.dtype == "int8" and name not in others and "fp8" not in name:
            changes["the least code taken as the next"] = _without_least
        elif spec.dtype.startswith("float8_e4m3"):
            changes["subnormal codes taken as 0"] = _without_subnormals
            # no case has caches of such values, nor their queries
            if "cache" not in name and not name.startswith("q"):
                changes["the largest code taken as the one before"] = _without_largest
        for text, change in changes.items():
            spoil = partial(_changed, name, change)
            yield on_inputs(definition, f"{name}: {text}", spoil)


def _changed(name: str, change: Change, inputs: Inputs) -> dict[str, Any]:
    value = inputs[name]
    if isinstance(value, Tiled):
        return {name: Tiled(change(value.base), value.shape)}
    return {} if value is None else {name: change(value)}


def _without_least(value: torch.Tensor) -> torch.Tensor:
    return value.clamp(min=-127)


def _without_subnormals(value: torch.Tensor) -> torch.Tensor:
    bits = value.view(torch.uint8)
    return torch.where(bits & 127 < 8, bits & 128, bits).view(value.dtype)


def _without_largest(value: torch.Tensor) -> torch.Tensor:
    bits = value.view(torch.uint8)
    return torch.where(bits & 127 == 126, bits - 1, bits).view(value.dtype)
