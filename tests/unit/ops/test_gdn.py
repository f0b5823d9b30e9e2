"""gdn: faults planted in the references."""

from __future__ import annotations

import re

import pytest
import torch

from generator.ops.op_types.gdn import op as gdn
from kernel_judge.checks.pairs import results
from kernel_judge.inputs.seeded_inputs import Stream
from tests.builders import (
    cases_of,
    class_of,
    compare_all,
    known,
    loaded,
    oracle_failures,
    run_of,
    sized,
    trial_of,
)
from tests.unit.ops.survivors import with_defect

STAGES = ("decode", "mtp", "prefill")
NAMES = {stage: f"gdn_{stage}_qk4_v8_d128_k_last" for stage in STAGES}
SMALL = {
    stage: sized(name, num_q_heads=2, num_k_heads=2, num_v_heads=4, head_size=16)
    for stage, name in NAMES.items()
}
REFERENCES = {stage: loaded(name).reference for stage, name in NAMES.items()}
LOOSEST = "flashinfer/fused"

_TILED = r"\1 = torch.cat([\2] * heads_per_key, dim=\3)"
_REPEATED = r" = (.*)\.repeat_interleave\(heads_per_key, dim=(.)\)"
# fault → patterns, each of which is once in every reference, and what replaces them
FAULTS = {
    "logarithm for the gate": [(r"decay = torch.exp\((.*steps)\)", r"decay = \1")],
    "A without exponential": [(r"torch.exp\(A_log.float\(\)\)", "A_log.float().abs()")],
    "gate of the wrong sign": [(r"exp\(-torch", "exp(torch")],
    "no dt_bias": [(r" \+ dt_bias.float\(\)", "")],
    "relu for softplus": [(r"torch.nn.functional.softplus", "torch.relu")],
    "no softplus": [(r"torch.nn.functional.softplus", "")],
    "beta without sigmoid": [(r"torch.sigmoid", "")],
    "default of 1 for scale": [(r"1.0 / math.sqrt\(head_size\)", "1.0")],
    "scale of 0 taken as it is": [(r"if not scale:", "if scale is None:")],
    "scale ignored": [(r"if not scale:", "if True:")],
    "no scale": [(r"\(scale \* read\)", "read")],
    "keys tiled": [(f"(keys){_REPEATED}", _TILED)],
    "queries tiled": [(f"(queries){_REPEATED}", _TILED)],
    "no decay": [(r"decayed = (\S+) \* .*", r"decayed = \1")],
    "decay after the update": [
        (r"decayed = (\S+) \* (.*)", r"decayed, faded = \1, \2"),
        (r"= decayed \+ (added.*)", r"= (decayed + \1) * faded"),
    ],
    "what was recalled before the decay": [
        (r"decayed = (\S+) \* (.*)", r"before, decayed = \1, \1 * \2"),
        (r"decayed, keys", "before, keys"),
    ],
    "beta of the value alone": [
        (
            r"added = (beta.*\(-1\)) \* \((.*) - recalled\)",
            r"added = \1 * \2 - recalled",
        )
    ],
    "no beta": [(r"added = (beta.*\(-1\)) \* ", "added = ")],
    "nothing replaced": [(r" - recalled", "")],
    "output of the state before": [
        (r'"bhvk,bhk->bhv", \w+, queries', '"bhvk,bhk->bhv", decayed, queries')
    ],
    "keys for queries": [(r"(\w+), queries", r"\1, keys")],
    "recalled from the transposed state": [
        (r'"bhvk,bhk->bhv", decayed', '"bhkv,bhk->bhv", decayed')
    ],
    "read from the transposed state": [
        (r'"bhvk,bhk->bhv", (\w+), queries', r'"bhkv,bhk->bhv", \1, queries')
    ],
    "update transposed": [
        (
            r"added.unsqueeze\(-1\) \* (keys.*).unsqueeze\(-2\)",
            r"added.unsqueeze(-2) * \1.unsqueeze(-1)",
        )
    ],
}
MTP_FAULTS = {
    "states of the buffer one late": [
        (r", t\] = state", ", (t + 1) % seq_len] = state")
    ],
    "buffer of the states before": [(r"(t\] = )state", r"\1decayed")],
    "buffer by slot": [(r"buffer\[:batch_size, t", "buffer[initial_state_indices, t")],
    "buffer left alone": [(r"( +)(intermediate_states_buffer\[.*)", r"\1pass")],
    "rows for slots": [
        (r"initial_state\[initial_state_i\S+", "initial_state[:batch_size]")
    ],
    "pool updated": [
        (r"initial_state.clone\(\)", "initial_state.index_copy(0, rows, state)"),
        (
            r"output = torch.empty",
            "rows = initial_state_indices.long()\n    output = torch.empty",
        ),
    ],
}
PREFILL_FAULTS = {
    "last token left out": [(r"lengths > position\)", "lengths > position + 1)")],
    "state not kept": [(r"new_state\[rows\] = updated", "pass")],
    "initial state ignored": [
        (r"new_state = state.clone\(\)", "new_state = 0 * state")
    ],
}


def mutant(stage, changes):
    text = REFERENCES[stage]
    for pattern, replacement in changes:
        text, count = re.subn(pattern, replacement, text)
        assert count == 1, f"{pattern!r} is {count} times in the reference"
    return run_of(text)


def rendered(stage, run, **changes):
    return class_of(gdn, SMALL[stage], run, **changes)


def loosest_failures(stage, run):
    """Return the cases in which a fault shows even with the widest tolerance."""
    cls, right = rendered(stage, run), rendered(stage, run_of(REFERENCES[stage]))
    failed = []
    for case in cases_of(cls):
        trial, expected = trial_of(cls, case), trial_of(right, case)
        right_ones = results(right.subject(), expected)
        actual = results(cls.subject(), trial)
        try:
            compare_all(cls.subject(), trial, actual, right_ones, LOOSEST)
        except AssertionError:
            failed.append(case.name)
    return failed


def of_stages(stages, faults):
    pairs = [(stage, fault) for stage in stages for fault in faults]
    return pytest.mark.parametrize(("stage", "fault"), pairs)


@pytest.mark.parametrize("stage", STAGES)
def test_the_reference_passes_every_case(stage):
    run = run_of(REFERENCES[stage])
    assert oracle_failures(rendered(stage, run)) == []
    assert loosest_failures(stage, run) == []


@pytest.mark.parametrize("stage", STAGES)
def test_the_reference_passes_with_its_own_sizes(stage):
    cls = class_of(gdn, known(NAMES[stage]), run_of(REFERENCES[stage]))
    assert oracle_failures(cls, ("small",)) == []


@of_stages(STAGES, FAULTS)
def test_a_fault_is_caught(stage, fault):
    run = mutant(stage, FAULTS[fault])
    assert oracle_failures(rendered(stage, run), ("small",))
    assert loosest_failures(stage, run)


@of_stages(["mtp"], MTP_FAULTS)
def test_a_fault_of_the_pool_and_the_buffer_is_caught(stage, fault):
    run = mutant(stage, MTP_FAULTS[fault])
    assert oracle_failures(rendered(stage, run), ("small",))
    assert loosest_failures(stage, run)


@of_stages(["prefill"], PREFILL_FAULTS)
def test_a_fault_of_the_sequences_is_caught(stage, fault):
    run = mutant(stage, PREFILL_FAULTS[fault])
    assert oracle_failures(rendered(stage, run), ("small",))
    assert loosest_failures(stage, run)


def test_a_state_that_goes_on_into_the_next_sequence_is_caught():
    run = run_of(REFERENCES["prefill"])

    def carried(q, k, v, state, A_log, a, dt_bias, b, cu_seqlens, scale):
        first = None if state is None else state[:1]
        whole = torch.stack([cu_seqlens[0], cu_seqlens[-1]])
        output, last = run(q, k, v, first, A_log, a, dt_bias, b, whole, scale)
        return output, last.expand(len(cu_seqlens) - 1, -1, -1, -1).contiguous()

    several = {c.name for c in cases_of(rendered("prefill", run))} - {
        "one-token",
        "linear-softplus",
    }
    assert set(oracle_failures(rendered("prefill", carried), ("small",))) == several
    assert set(loosest_failures("prefill", carried)) == several


@pytest.mark.parametrize("stage", ["decode", "prefill"])
def test_a_state_with_its_keys_first_is_caught(stage):
    run = run_of(REFERENCES[stage])
    keys_first = with_defect(SMALL[stage], run, "K/V state transposed")
    failed = oracle_failures(rendered(stage, keys_first), ("small",))
    assert failed == [case.name for case in cases_of(rendered(stage, keys_first))]


def test_a_state_that_is_rounded_on_the_way_is_caught():
    changes = [(r"= decayed \+", "= decayed.bfloat16().float() +")]
    for stage in STAGES:
        assert oracle_failures(rendered(stage, mutant(stage, changes)), ("small",))


def test_nothing_but_the_buffer_may_be_written():
    run = run_of(REFERENCES["mtp"])
    cls = rendered("mtp", run)
    for case in cases_of(cls):
        trial = trial_of(cls, case)
        filled = () if case.name == "no-buffer" else ("intermediate_states_buffer",)
        assert trial.modified_inputs == filled
        cls().test_inputs_unmodified(trial)

    def in_place(q, k, v, initial_state, *rest):
        initial_state.mul_(2)
        return run(q, k, v, initial_state, *rest)

    cls = rendered("mtp", in_place)
    with pytest.raises(AssertionError, match=r"writes to initial_state$"):
        cls().test_inputs_unmodified(trial_of(cls, cases_of(cls)[0]))


@pytest.mark.parametrize("stage", STAGES)
def test_keys_have_length_1_and_heads_long_and_short_memories(stage):
    definition = known(f"gdn_{stage}_qk16_v32_d128_k_last")
    (case,) = (c for c in gdn.cases(definition) if c.name in ("batch", "long-memory"))
    inputs = gdn.make_inputs(definition, case, Stream(definition.name, case.name))
    # a kernel that normalises queries itself is told by those of another length
    wanted = {"q": case.params.get("q_length", 1.0), "k": 1.0}
    for name, length in wanted.items():
        lengths = inputs[name].double().square().sum(-1).sqrt()
        assert (lengths - length).abs().max() < 2**-9
    gates = gdn.gates(inputs)[0].exp()
    assert gates.min() < 0.8
    assert gates.max() > 0.99
    cls = class_of(gdn, definition, None)
    medium = [c for c in cases_of(cls, ("medium",)) if c.name != "long-memory"]
    assert {c.params["q_length"] for c in medium} == {0.5}
    for case in cases_of(cls, ("small", "medium")):
        state = trial_of(cls, case).inputs.get("state")
        assert state is None or not torch.equal(state, state.transpose(-1, -2))
