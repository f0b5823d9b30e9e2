"""Least work of a call: bytes read and written once, and multiplications.

An op_type whose inputs are read in part, or that multiplies matrices, says so in a
module `work` of its folder: `work(definition, axes, inputs)`. The count is a lower bound
of what any kernel does, since a time that falls below it is called impossible: where the
values decide what is read, it is what these values need.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from generator.ops.registry import op_packages
from kernel_judge.definition import Definition
from kernel_judge.inputs.memory import dtype_of, shape_of


@dataclass(frozen=True)
class Work:
    """Bytes and floating-point operations of a call.

    Attributes:
        read: bytes of the inputs that are needed, each once.
        written: bytes of the outputs.
        flops: operations of matrix products, by the dtype whose peak they have; a
            multiplication and an addition are two.
    """

    read: int
    written: int
    flops: Mapping[str, int] = field(default_factory=dict)


def work_of(
    definition: Definition, axes: Mapping[str, int], inputs: Mapping[str, Any]
) -> Work:
    """Return the work of a call on some inputs; `axes` are the case's own."""
    lengths = {**definition.axes, **axes}
    package = op_packages().get(definition.op_type)
    if package is not None and importlib.util.find_spec(f"{package}.work"):
        module: Any = importlib.import_module(f"{package}.work")
        least: Work = module.work(definition, lengths, inputs)
        return least
    return Work(read_whole(inputs), written(definition, lengths, inputs))


def product_work(
    definition: Definition, axes: Mapping[str, int], inputs: Mapping[str, Any]
) -> Work:
    """Return 2·M·N·K operations, of each batch, of the first input's dtype.

    All inputs are read, codes of several bits and their scales too.
    """
    flops = 2 * axes.get("batch_size", 1) * axes["M"] * axes["N"] * axes["K"]
    read = sum(map(size_of, inputs.values()))
    dtype = next(iter(definition.interface.input_specs.values())).dtype
    return Work(read, written(definition, axes, inputs), {dtype: flops})


def read_whole(inputs: Mapping[str, Any]) -> int:
    """Return the bytes of all inputs where each element must matter, else 0.

    Where integers or bools are among them, they may say that others are read in part.
    """
    tensors = [v for v in inputs.values() if isinstance(v, torch.Tensor)]
    if any(_selects(v) for v in tensors):
        return 0
    return sum(map(size_of, tensors))


def sizes_of(inputs: Mapping[str, Any], names: Collection[str]) -> int:
    """Return the bytes of some inputs; one that is None has none."""
    return sum(size_of(inputs.get(name)) for name in names)


def size_of(value: Any) -> int:
    """Return the bytes of a tensor, 0 of anything else."""
    if not isinstance(value, torch.Tensor):
        return 0
    return value.numel() * value.dtype.itemsize


def written(
    definition: Definition, axes: Mapping[str, int], inputs: Mapping[str, Any]
) -> int:
    """Return the bytes of all outputs whose lengths are known."""
    total, lengths = 0, dict(axes)
    for name, spec in definition.interface.input_specs.items():
        value = inputs.get(name)
        if spec.shape and isinstance(value, torch.Tensor):
            lengths |= dict(zip(spec.shape, value.shape, strict=True))
    for spec in definition.interface.output_specs.values():
        if spec.shape is not None and set(spec.shape) <= lengths.keys():
            size = math.prod(shape_of(spec, lengths))
            total += size * dtype_of(spec.dtype).itemsize
    return total


def _selects(value: torch.Tensor) -> bool:
    """Return whether a tensor may say what is read: not the bytes that are codes."""
    if value.dtype in (torch.int8, torch.uint8):
        return False
    return value.dtype == torch.bool or not (
        value.is_floating_point() or "float" in str(value.dtype)
    )
