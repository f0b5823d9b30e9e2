"""Checks: functions of a subject and a trial that return what they came to.

`check(subject, trial) -> Checked` raises nothing but what `run()`, a kernel or an oracle
raises. Those of a ground truth, of recordings and of relations take what they compare
with as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kernel_judge.checked import Checked
from kernel_judge.checks.outputs import (
    contract,
    determinism,
    inputs_unmodified,
    matches_cpu,
    output_dtype,
    output_shape,
    strided_inputs,
)
from kernel_judge.checks.recorded import recorded
from kernel_judge.checks.related import metamorphic
from kernel_judge.checks.sources import ground_truth, ground_truths_agree, oracle
from kernel_judge.inputs.trial import Trial
from kernel_judge.subject import Subject

Check = Callable[[Subject, Trial], Checked]
CHECKS: Mapping[str, Check] = {
    "test_contract": contract,
    "test_output_shape": output_shape,
    "test_output_dtype": output_dtype,
    "test_matches_oracle": oracle,
    "test_inputs_unmodified": inputs_unmodified,
    "test_determinism": determinism,
    "test_strided_inputs": strided_inputs,
}
"""The checks that need a subject and a trial alone, by the name of their test."""

__all__ = [
    "CHECKS",
    "Check",
    "contract",
    "determinism",
    "ground_truth",
    "ground_truths_agree",
    "inputs_unmodified",
    "matches_cpu",
    "metamorphic",
    "oracle",
    "output_dtype",
    "output_shape",
    "recorded",
    "strided_inputs",
]
