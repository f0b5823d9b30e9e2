"""A case that only solutions are asked: values that float16 has no number for."""

from __future__ import annotations

from generator.ops.far_factors import beyond_float16
from generator.ops.op_types.causal_conv1d.op import cases as cases_of_kernels
from kernel_judge.definition import Case, Definition


def cases(definition: Definition) -> list[Case]:
    """Return steps, or short sequences, of about 100,000."""
    usual = cases_of_kernels(definition)
    names = [case.name for case in usual]
    of = "shuffled-slots" if "shuffled-slots" in names else "new-sequences"
    return beyond_float16(usual, of, "x", "conv_states")
