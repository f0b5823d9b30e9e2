"""Asserts that must fail do fail: each planted fault is red in the right tests."""

from __future__ import annotations

import pytest

from generator.plan import _class_names
from tests.harness.datasets import (
    NORM,
    NORM_FAULTS,
    PREFILL,
    PREFILL_FAULTS,
    class_name,
)

TESTS = {
    "test_contract",
    "test_output_shape",
    "test_output_dtype",
    "test_matches_oracle",
    "test_determinism",
    "test_inputs_unmodified",
}


def test_a_run_with_a_fault_exits_1(red):
    assert red.status == 1, red.stdout + red.stderr


@pytest.mark.parametrize("definition", [NORM, PREFILL])
def test_a_right_definition_is_green_beside_faulty_ones(red, definition):
    name = class_name(definition)
    assert red.functions(name, "failed") == set()
    assert red.functions(name, "error") == set()
    assert red.functions(name, "passed") == TESTS


@pytest.mark.parametrize("fault", NORM_FAULTS)
def test_a_fault_of_a_norm_is_red_in_the_right_tests(red, fault):
    name = class_name(f"{NORM}_{fault}")
    expected = NORM_FAULTS[fault][2]
    assert red.functions(name, "failed") == expected
    assert red.functions(name, "error") == set()
    assert red.functions(name, "passed") >= TESTS - expected


@pytest.mark.parametrize("fault", PREFILL_FAULTS)
def test_a_fault_of_attention_is_red_against_the_oracle_alone(red, fault):
    name = class_name(f"{PREFILL}_{fault}")
    assert red.functions(name, "failed") == {"test_matches_oracle"}
    assert red.functions(name, "passed") >= TESTS - {"test_matches_oracle"}


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        (f"{NORM}_eps_tenfold", "'output' against oracle, tiny-variance: FAILED"),
        (f"{NORM}_eps_tenfold", "mismatched elements: "),
        (f"{NORM}_nan_output", "actual has NaN in "),
        (f"{NORM}_float_output", "output is torch.float32, declared torch.bfloat16"),
        (f"{NORM}_short_output", "output is (1, 127), declared (1, 128)"),
        (f"{NORM}_two_outputs", "run() returned 2 values, the definition declares 1"),
        (f"{NORM}_writes_input", "run() writes to hidden_states"),
        (f"{NORM}_second_call_differs", "output differs between two calls"),
        (f"{NORM}_raises", "RuntimeError: planted"),
        (f"{PREFILL}_natural_lse", "'lse' against oracle"),
        (f"{PREFILL}_natural_lse", "which is ln 2"),
    ],
)
def test_the_failure_says_what_is_wrong(red, definition, text):
    details = [
        o.detail
        for o in red.outcomes
        if o.test_class == class_name(definition) and o.status == "failed"
    ]
    assert any(text in detail for detail in details), details[0]


def test_what_failed_is_recorded_as_failed(red):
    name = f"{PREFILL}_natural_lse"
    records = [
        record
        for outcome in red.outcomes
        for record in outcome.comparisons
        if record["definition"] == name
    ]
    verdicts = {(r["output"], r["verdict"]) for r in records}
    assert verdicts == {("output", "PASSED"), ("lse", "FAILED")}
    assert all(r["source"] == "oracle" for r in records)


def test_the_class_names_are_those_of_the_plan():
    names = [NORM, PREFILL]
    assert _class_names(names) == [class_name(name) for name in names]
