"""A case that only solutions are asked: huge steps."""

from __future__ import annotations

from generator.ops.huge_steps import of_state_spaces
from generator.ops.op_types.mamba_ssu.op import cases as cases_of_kernels
from kernel_judge.definition import Case, Definition

# each has one value a head, which kernels read once: in part from two calls it has two
INPUTS_GO_TOGETHER = {"A": ("dt", "D", "dt_bias")}


def cases(definition: Definition) -> list[Case]:
    """Return the case of huge steps."""
    return of_state_spaces(cases_of_kernels(definition))
