"""A case that only solutions are asked: steps whose exponential float32 has no number for."""

from __future__ import annotations

from dataclasses import replace

from generator.ops.op_types.gdn.op import cases as cases_of_kernels
from kernel_judge.definition import Case, Definition

# 100 times exp(-6.6) is what 20 times exp(-5) is, which kernels are asked
_HUGE = {"dt_mean": 100.0, "A_mean": -6.6}


def cases(definition: Definition) -> list[Case]:
    """Return steps of about 100: a softplus as log(1 + e^x) is infinite there."""
    named = [c for c in cases_of_kernels(definition) if c.name == "linear-softplus"]
    return [replace(c, name="huge-steps", params={**c.params, **_HUGE}) for c in named]
