"""A case that only solutions are asked: gains and shifts that float16 has no number for."""

from __future__ import annotations

from generator.ops.far_factors import beyond_float16
from generator.ops.op_types.adaptive_layernorm.op import cases as cases_of_kernels
from kernel_judge.definition import Case, Definition


def cases(definition: Definition) -> list[Case]:
    """Return gains and shifts of about 100,000."""
    usual = cases_of_kernels(definition)
    return beyond_float16(usual, "three-samples", "gain", "shift")
