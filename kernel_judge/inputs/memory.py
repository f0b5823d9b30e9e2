"""The dtypes, shapes and bytes of a case, from its axes: nothing is allocated."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress

import torch

from kernel_judge.definition import Case, Definition, TensorSpec

# the inputs, a copy for the callee, its float32 working copy, and the float64 oracle's
COPIES = 8
_KEPT = 128 << 20  # of a GPU, by a process: to ask for it again takes milliseconds
PeakBytes = Callable[[Definition, Case], int]


def dtype_of(name: str) -> torch.dtype:
    """Return torch's dtype of the dataset's name for it.

    Raises ValueError where this torch has no such dtype.
    """
    dtype = getattr(torch, {"float4_e2m1": "float4_e2m1fn_x2"}.get(name, name), None)
    if dtype is None:
        raise ValueError(f"torch {torch.__version__} has no dtype {name}")
    assert isinstance(dtype, torch.dtype)
    return dtype


def shape_of(spec: TensorSpec, axes: Mapping[str, int]) -> tuple[int, ...]:
    """Return a tensor's lengths with every axis replaced by its value."""
    return tuple(axes[axis] for axis in spec.shape or ())


def tensor_bytes(definition: Definition, case: Case) -> int:
    """Return the bytes of all inputs and outputs of a case."""
    axes = {**definition.axes, **case.axes}
    interface = definition.interface
    specs = [*interface.input_specs.values(), *interface.output_specs.values()]
    return sum(
        math.prod(shape_of(spec, axes)) * dtype_of(spec.dtype).itemsize
        for spec in specs
        if spec.shape is not None
    )


def give_back(device: torch.device) -> None:
    """Give back what torch keeps of a GPU's memory for this process alone."""
    if device.type == "cuda" and torch.cuda.memory_reserved(device) > _KEPT:
        # a context that a kernel has broken gives it back at its end
        with suppress(RuntimeError):
            torch.cuda.empty_cache()
