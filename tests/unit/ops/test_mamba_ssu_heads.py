"""FlashInfer's mamba kernel reads one value a head: inputs with several are no question to it."""

from __future__ import annotations

import pytest

from generator.ops.op_types.mamba_ssu.op import heads_have_one_value
from generator.rules.subjects import subject_of
from kernel_judge.skipping import Skip
from tests.builders import CPU, loaded


@pytest.mark.parametrize("name", ["dt", "A", "D", "dt_bias"])
def test_several_values_a_head_are_skipped(name):
    subject = subject_of(loaded("mamba_ssu_decode_h64_d64_s128_ng4"))
    trial = subject.trial(subject.cases(("small",))[0], CPU)
    heads_have_one_value(trial)
    value = trial.inputs[name].clone()
    value[..., -1] += 1.0
    trial.inputs[name] = value
    with pytest.raises(Skip, match=f"{name} has several values a head"):
        heads_have_one_value(trial)
