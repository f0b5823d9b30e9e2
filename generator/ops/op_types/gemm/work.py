"""The work of C = A @ B.T: both matrices are read, and M·N·K products are added up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.work import Work, read_whole, written
from kernel_judge.definition import Definition


def work(
    definition: Definition, axes: Mapping[str, int], inputs: Mapping[str, Any]
) -> Work:
    """Return 2·M·N·K operations, of each batch, of the inputs' dtype."""
    flops = 2 * axes.get("batch_size", 1) * axes["M"] * axes["N"] * axes["K"]
    dtype = definition.interface.input_specs["A"].dtype
    return Work(read_whole(inputs), written(definition, axes, inputs), {dtype: flops})
