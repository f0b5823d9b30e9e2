"""A case that only solutions are asked: values that float16 has no number for."""

from __future__ import annotations

from generator.ops.far_factors import beyond_float16
from generator.ops.op_types.plain_activation.op import cases as cases_of_kernels
from kernel_judge.definition import Case, Definition


def cases(definition: Definition) -> list[Case]:
    """Return rows of about 100,000."""
    return beyond_float16(cases_of_kernels(definition), "odd-rows", "x")
