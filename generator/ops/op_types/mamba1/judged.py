"""A case that only solutions are asked: steps whose exponential float32 has no number for."""

from __future__ import annotations

from dataclasses import replace

from generator.ops.op_types.mamba1.op import cases as cases_of_kernels
from kernel_judge.definition import Case, Definition


def cases(definition: Definition) -> list[Case]:
    """Return steps of about 100: a softplus as log(1 + e^x) is infinite there.

    Inputs are an eighth of the usual. So what is added to a state is less than with steps
    of 20, which kernels are asked, and so is what they round.
    """
    (large,) = [c for c in cases_of_kernels(definition) if c.name == "large-steps"]
    params = {**large.params, "dt_mean": 100.0}
    return [replace(large, name="huge-steps", params=params, moved={"x": -3.0})]
