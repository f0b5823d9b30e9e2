"""A case that only solutions are asked: huge steps."""

from __future__ import annotations

from generator.ops.huge_steps import of_delta_nets
from generator.ops.op_types.kda.op import cases as cases_of_kernels
from kernel_judge.definition import Case, Definition


def cases(definition: Definition) -> list[Case]:
    """Return the case of huge steps."""
    return of_delta_nets(cases_of_kernels(definition))
