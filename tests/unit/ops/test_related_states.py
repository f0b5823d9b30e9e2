"""The relations of gated delta nets and state space models hold, and faults break them."""

from __future__ import annotations

import pytest
import torch

from generator.ops.op_types.gdn import op as gdn
from generator.ops.op_types.mamba_ssu import op as mamba_ssu
from tests.builders import loaded, replaced, run_of, sized
from tests.unit.ops.related import red, run_named, verdicts

HEADS = {"num_q_heads": 2, "num_k_heads": 2, "num_v_heads": 4, "head_size": 16}
NAMES = {
    stage: f"gdn_{stage}_qk4_v8_d128_k_last" for stage in ("decode", "mtp", "prefill")
}
STAGES = {stage: sized(name, **HEADS) for stage, name in NAMES.items()}
BUFFER = "intermediate_states_buffer"


def peers():
    return {"decode": (STAGES["decode"], run_named(NAMES["decode"]))}


def of_stage(stage, run):
    return red(gdn, STAGES[stage], run, **peers())


@pytest.mark.parametrize("stage", STAGES)
def test_right_references_hold(stage):
    assert of_stage(stage, run_named(NAMES[stage])) == set()


def test_decode_is_asked_where_the_file_has_it():
    run = run_named(NAMES["prefill"])
    alone = set(verdicts(gdn, STAGES["prefill"], run))
    beside = set(verdicts(gdn, STAGES["prefill"], run, peers=peers()))
    assert beside - alone == {"prefill-is-decode"}
    mtp = run_named(NAMES["mtp"])
    assert "drafts-are-decode" in verdicts(gdn, STAGES["mtp"], mtp, peers=peers())


def test_a_state_returned_transposed_breaks_the_chunks():
    run = run_named(NAMES["prefill"])

    def transposed(*given):
        output, state = run(*given)
        return output, state.transpose(-1, -2).contiguous()

    broken = of_stage("prefill", transposed)
    assert broken >= {"prefill-in-chunks", "prefill-by-one-token", "prefill-is-decode"}


def test_a_state_transposed_throughout_shows_against_decode_alone():
    run = run_named(NAMES["prefill"])

    def transposed(q, k, v, state, *rest):
        given = None if state is None else state.transpose(-1, -2).contiguous()
        output, after = run(q, k, v, given, *rest)
        return output, after.transpose(-1, -2).contiguous()

    assert of_stage("prefill", transposed) == {"prefill-is-decode"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # what is recalled is that of the state before its decay
        (
            'torch.einsum("bhvk,bhk->bhv", decayed, keys[tokens])',
            'torch.einsum("bhvk,bhk->bhv", new_state[rows], keys[tokens])',
        ),
        ("new_state = state.clone()", "new_state = torch.zeros_like(state)"),
        ("tokens = starts[rows] + position", "tokens = rows * 0 + position"),
    ],
)
def test_a_fault_of_prefill_shows_against_decode(old, new):
    text = replaced(loaded(NAMES["prefill"]).reference, old, new)
    assert "prefill-is-decode" in of_stage("prefill", run_of(text))


def test_a_fault_of_drafts_shows():
    run = run_named(NAMES["mtp"])
    at = list(STAGES["mtp"].interface.inputs).index("initial_state_indices")

    def first_slots(*given):
        rows = torch.arange(len(given[at])).int()
        return run(*given[:at], rows, *given[at + 1 :])

    broken = of_stage("mtp", first_slots)
    assert broken >= {"batch-reversed", "slots-permuted", "drafts-are-decode"}

    text = loaded(NAMES["mtp"]).reference
    stale = replaced(text, "buffer[:batch_size, t] = state", "buffer[:batch_size] *= 1")
    assert of_stage("mtp", run_of(stale)) >= {"drafts-in-two", "drafts-are-decode"}


def test_a_default_of_ones_for_a_missing_state_shows():
    text = loaded(NAMES["decode"]).reference
    wrong = replaced(text, "state = torch.zeros(", "state = torch.ones(")
    assert of_stage("decode", run_of(wrong)) == {"no-state-is-zeros"}


MAMBA_NAME = "mamba_ssu_decode_h64_d64_s128_ng4"
MAMBA = sized(MAMBA_NAME, nheads=4, ngroups=2, head_dim=8, dstate=16)


def test_a_step_holds_and_its_faults_show():
    run = run_named(MAMBA_NAME)
    assert red(mamba_ssu, MAMBA, run) == set()
    text = loaded(MAMBA_NAME).reference
    # rows are taken for slots: padding takes part, and others' states
    rows_for_slots = replaced(
        text, "slots = state_batch_indices[rows].long()", "slots = rows"
    )
    broken = red(mamba_ssu, MAMBA, run_of(rows_for_slots))
    assert broken >= {"batch-reversed", "slots-permuted", "batch-in-two"}
    other_groups = replaced(text, "to_state = B[rows]", "to_state = B[rows.flip(0)]")
    assert "batch-in-two" in red(mamba_ssu, MAMBA, run_of(other_groups))
