"""The work of a product of float8 matrices: all is read, B·M·N·K products are added up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.work import Work, read_whole, written
from kernel_judge.definition import Definition


def work(
    definition: Definition, axes: Mapping[str, int], inputs: Mapping[str, Any]
) -> Work:
    """Return the operations at the peak of float8, and the bytes of all inputs."""
    flops = 2 * axes.get("batch_size", 1) * axes["M"] * axes["N"] * axes["K"]
    whole = written(definition, axes, inputs)
    return Work(read_whole(inputs), whole, {"float8_e4m3fn": flops})
