"""mamba_ssu: faults planted in the reference, the inputs, the adapter."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
import torch

from generator.ops.op_types.mamba_ssu import op as mamba_ssu
from kernel_judge.skipping import Skip
from tests.builders import (
    cases_of,
    class_of,
    known,
    loaded,
    of_flashinfer,
    oracle_failures,
    replaced,
    run_of,
    sized,
    trial_of,
)

NAME = "mamba_ssu_decode_h128_d64_s128_ng8"
SMALL = sized(NAME, nheads=8, head_dim=4, dstate=16, ngroups=2)
REFERENCE = loaded(NAME).reference
SOFTPLUS = "torch.nn.functional.softplus(dt[rows].float() + dt_bias.float())"
# fault → the text and what replaces it
FAULTS = {
    "no softplus": (SOFTPLUS, "(dt[rows].float() + dt_bias.float())"),
    "bias behind softplus": (
        SOFTPLUS,
        "torch.nn.functional.softplus(dt[rows].float()) + dt_bias.float()",
    ),
    "D without input": ("D.float() * inputs", "D.float()"),
    "rows for slots": ("new_state[slots]", "new_state[rows]"),
    "state read by rows": ("state[slots].float()", "state[rows].float()"),
    "B without step": ("(steps * inputs)", "inputs"),
    "decay without step": (" * steps.unsqueeze(-1)", ".expand(len(rows), -1, -1, -1)"),
    "groups of B interleaved": (
        "B[rows].float().repeat_interleave(heads_per_group, dim=1)",
        "B[rows].float().repeat(1, heads_per_group, 1)",
    ),
    "groups of C interleaved": (
        "C[rows].float().repeat_interleave(heads_per_group, dim=1)",
        "C[rows].float().repeat(1, heads_per_group, 1)",
    ),
    "slot -1 taken as the last": (">= 0", ">= -1"),
    "output of the rounded state": (
        'rhds,rhs->rhd", updated,',
        'rhds,rhs->rhd", updated.bfloat16().float(),',
    ),
}


def rendered(run):
    return class_of(mamba_ssu, SMALL, run)


def mutant_failures(fault):
    run = run_of(replaced(REFERENCE, *FAULTS[fault]))
    return oracle_failures(rendered(run), ("small",))


def test_the_reference_passes_every_case():
    assert oracle_failures(rendered(run_of(REFERENCE))) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught(fault):
    assert mutant_failures(fault)


def test_padding_shows_in_the_padded_case_alone():
    assert mutant_failures("slot -1 taken as the last") == ["padding"]


def test_a_padded_row_is_zero():
    run = run_of(REFERENCE)

    def faulty(*inputs):
        output, state = run(*inputs)
        return output.where((inputs[-1] >= 0)[:, None, None], inputs[1]), state

    assert oracle_failures(rendered(faulty), ("small",)) == ["padding"]


def test_an_update_in_place_is_caught():
    run = run_of(replaced(REFERENCE, "state.clone()", "state"))
    cls = rendered(run)
    for case in cases_of(cls):
        trial = trial_of(cls, case)
        assert trial.modified_inputs == ("state",)
        with pytest.raises(AssertionError):
            cls().test_inputs_unmodified(trial)


def inputs_of(name):
    cls = class_of(mamba_ssu, known(NAME), run_of(REFERENCE))
    (case,) = [case for case in cases_of(cls) if case.name == name]
    return trial_of(cls, case).inputs


def test_the_cases_take_softplus_to_both_ends():
    steps = {
        name: torch.nn.functional.softplus(made["dt"].double() + made["dt_bias"])
        for name, made in (
            (name, inputs_of(name)) for name in ("tiny-steps", "large-steps")
        )
    }
    assert steps["tiny-steps"].max() < 0.01
    assert steps["large-steps"].min() < 20 < steps["large-steps"].max()


def test_decays_and_steps_are_one_value_a_head():
    made = inputs_of("one-sequence")
    assert made["A"].max() < 0
    assert made["A"].min() < -4 < -0.25 < made["A"].max()
    for name, kept in (("dt", 2), ("A", 1), ("D", 1), ("dt_bias", 1)):
        heads = made[name].flatten(kept)
        assert torch.equal(heads, heads[..., :1].expand_as(heads))
        assert len(heads[..., 0].unique()) > 50


def test_there_are_always_more_slots_than_rows():
    # otherwise the rows left out of the output would be left out of the pool as well
    for case in mamba_ssu.cases(SMALL):
        assert case.axes["state_cache_size"] > case.axes["batch_size"]


def test_padded_rows_are_not_held_against_a_kernel():
    made = inputs_of("padding")
    rows = mamba_ssu.defined_rows(SMALL, made)
    assert rows.tolist() == [True, False, True, False]


def kernel(state, x, dt, A, B, C, D, *, dt_bias, dt_softplus, **options):
    """Stand in for FlashInfer's: demands its strides, writes the state in place."""
    assert dt_softplus
    assert options.pop("algorithm") in ("simple", "vertical")
    assert options.pop("pad_slot_id") == -1
    assert dt.stride()[1:] == (1, 0)
    assert A.stride() == (1, 0, 0)
    assert D.stride() == dt_bias.stride() == (1, 0)
    slots = options.pop("state_batch_indices")
    assert not options
    output, new_state = run_of(REFERENCE)(state, x, dt, A, B, C, D, dt_bias, slots)
    state.copy_(new_state)
    # what the real kernels return for padding is of no use
    output[slots < 0] = 77.0
    return output


def test_the_adapter_passes_views_and_returns_the_pool(monkeypatch):
    mamba = SimpleNamespace(selective_state_update=kernel)
    monkeypatch.setitem(sys.modules, "flashinfer", SimpleNamespace(mamba=mamba))
    monkeypatch.setitem(sys.modules, "flashinfer.mamba", mamba)
    cls = rendered(run_of(REFERENCE))
    for case in cases_of(cls):
        trial = trial_of(cls, case)
        made = of_flashinfer(cls, trial, "simple")
        rows = cls.op.defined_rows(trial.definition, trial.inputs)
        assert torch.equal(made[0][rows], trial.outputs[0][rows])
        assert torch.equal(made[1], trial.outputs[1])


def test_values_that_differ_within_a_head_are_not_for_the_kernel():
    cls = rendered(run_of(REFERENCE))
    trial = trial_of(cls, cases_of(cls)[0])
    check_inputs = cls.subject().op.kernels["flashinfer"].check_inputs
    check_inputs(trial)
    trial.inputs["D"][3, 2] += 1
    with pytest.raises(Skip, match="several values a head"):
        check_inputs(trial)
