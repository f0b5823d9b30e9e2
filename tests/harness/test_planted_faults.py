"""Asserts that must fail do fail: each planted fault is red in the right tests."""

from __future__ import annotations

import pytest

from generator.rendering.names import class_names
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
    "test_strided_inputs",
    "test_metamorphic",
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
def test_a_fault_of_attention_is_red_against_the_oracle_and_itself(red, fault):
    name = class_name(f"{PREFILL}_{fault}")
    failed = {"test_matches_oracle", "test_metamorphic"}
    assert red.functions(name, "failed") == failed
    assert red.functions(name, "passed") >= TESTS - failed


def relations(run, fault, status):
    """Return the relations of a prefill with a fault of which a case has a status."""
    return {
        record["source"].removeprefix("metamorphic:")
        for o in run.outcomes
        if o.test_class == class_name(f"{PREFILL}_{fault}")
        for record in o.comparisons
        if record["source"] != "oracle" and record["verdict"] == status
    }


def test_the_relations_that_a_fault_breaks_are_red(red):
    assert relations(red, "natural_lse", "FAILED") == {"kv-in-two-merged"}
    # what a full last page reads beyond its tokens lies elsewhere on other pages
    assert "pages-permuted" in relations(red, "full_last_page", "FAILED")
    for fault in ("mask_top_left", "mask_missing"):
        broken = relations(red, fault, "FAILED")
        assert {"prefill-in-chunks", "prefill-by-one-query"} <= broken
        assert "pages-permuted" not in broken


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
        (f"{PREFILL}_natural_lse", "metamorphic:kv-in-two-merged, whole-prompts"),
        (f"{PREFILL}_natural_lse", "the bound: "),
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
        if record["definition"] == name and record["source"] == "oracle"
    ]
    verdicts = {(r["output"], r["verdict"]) for r in records}
    assert verdicts == {("output", "PASSED"), ("lse", "FAILED")}


def test_the_class_names_are_those_of_the_plan():
    names = [NORM, PREFILL]
    assert class_names(names) == [class_name(name) for name in names]
