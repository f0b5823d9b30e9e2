"""The work of a product of fp4 codes: all is read, M·N·K products are added up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.work import Work, size_of, written
from kernel_judge.definition import Definition


def work(
    definition: Definition, axes: Mapping[str, int], inputs: Mapping[str, Any]
) -> Work:
    """Return 2·M·N·K operations of fp4, and the bytes of all inputs but padding."""
    read = sum(size_of(value) for name, value in inputs.items() if name != "a_scale")
    read += axes["M"] * definition.axes["num_k_blocks"]
    flops = 2 * axes["M"] * axes["N"] * 2 * axes["bytes_k"]
    return Work(read, written(definition, axes, inputs), {"float4_e2m1": flops})
