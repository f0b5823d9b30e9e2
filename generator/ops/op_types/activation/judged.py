"""A case that only solutions are asked: gates and factors that float16 has no number for."""

from __future__ import annotations

from generator.ops.far_factors import beyond_float16
from generator.ops.op_types.activation.op import cases as cases_of_kernels
from kernel_judge.definition import Case, Definition


def cases(definition: Definition) -> list[Case]:
    """Return rows of about 100,000, of which each gate is open or shut."""
    return beyond_float16(cases_of_kernels(definition), "odd-rows", "input")
