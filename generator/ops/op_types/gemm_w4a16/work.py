"""The work of a product with int4 weights: all is read, M·N·K products are added up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.work import Work, size_of, written
from kernel_judge.definition import Definition


def work(
    definition: Definition, axes: Mapping[str, int], inputs: Mapping[str, Any]
) -> Work:
    """Return 2·M·N·K operations of the activations' dtype, and the bytes of all inputs."""
    flops = 2 * axes["M"] * axes["N"] * axes["K"]
    read = sum(map(size_of, inputs.values()))
    dtype = definition.interface.input_specs["x"].dtype
    return Work(read, written(definition, axes, inputs), {dtype: flops})
