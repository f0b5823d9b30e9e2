"""Cases that only solutions are asked: steps whose exponential float32 has no number for.

A softplus as log(1 + e^x) is infinite at steps of 100.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kernel_judge.definition import Case


def of_delta_nets(cases: Iterable[Case]) -> list[Case]:
    """Return the case `linear-softplus`, where there is one, with steps of about 100.

    100 times exp(-6.6) is what 20 times exp(-5) is, which kernels are asked.
    """
    huge = {"dt_mean": 100.0, "A_mean": -6.6}
    named = [case for case in cases if case.name == "linear-softplus"]
    return [replace(c, name="huge-steps", params={**c.params, **huge}) for c in named]


def of_state_spaces(cases: Iterable[Case]) -> list[Case]:
    """Return the case `large-steps` with steps of about 100.

    Inputs are an eighth of the usual. So what is added to a state is less than with steps
    of 20, which kernels are asked, and so is what they round.
    """
    (large,) = [case for case in cases if case.name == "large-steps"]
    params = {**large.params, "dt_mean": 100.0}
    return [replace(large, name="huge-steps", params=params, moved={"x": -3.0})]
