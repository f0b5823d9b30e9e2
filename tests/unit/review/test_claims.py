"""Times that traces claim, against those that were measured again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from generator.evaluation.against import Time
from generator.review.solutions import (
    NO_TIMES,
    OTHER_TIMES,
    EvaluatedChange,
    TraceClaim,
    contradicted,
    without_any_time,
)

KEY = ("d", "a GPU", "s", "one")
CLAIM = TraceClaim("traces/a/x/d.jsonl", 3, "s", "one", "PASSED", "PASSED")


def trace(milliseconds: float, hardware: str = "a GPU") -> dict[str, Any]:
    evaluation = {
        "environment": {"hardware": hardware},
        "performance": {"latency_ms": milliseconds},
    }
    return {"solution": "s", "workload": {"uuid": "one"}, "evaluation": evaluation}


def test_a_time_that_is_too_short_is_a_false_claim() -> None:
    found = contradicted(CLAIM, trace(1.0), "d", "a GPU", {KEY: Time(2.0, 0.01)})
    assert found.found == OTHER_TIMES
    assert found.is_false
    (line,) = EvaluatedChange("cuda", (), [found]).against
    assert "line 3: s claims PASSED, is OTHER TIMES it claims 1.0000 ms" in line


@pytest.mark.parametrize(
    ("claimed", "found"),
    [(0.0244, "PASSED"), (0.0226, NO_TIMES), (0.0219, OTHER_TIMES)],
)
def test_a_time_within_what_processes_differ_by_is_not_false(
    claimed: float, found: str
) -> None:
    time = Time(0.0250, 0.0007, 4.0)
    one = contradicted(CLAIM, trace(claimed), "d", "a GPU", {KEY: time})
    assert one.found == found
    assert ("too near to tell" in one.why) == (found == NO_TIMES)
    # what processes differ by is no excuse for a speedup of another kind
    of = trace(0.0250)
    of["evaluation"]["performance"]["speedup_factor"] = 4.5
    assert contradicted(CLAIM, of, "d", "a GPU", {KEY: time}).is_false


def test_a_time_within_the_spread_stands() -> None:
    assert contradicted(CLAIM, trace(1.9), "d", "a GPU", {KEY: Time(2.0, 0.1)}) == CLAIM


@pytest.mark.parametrize(
    ("claimed", "time"),
    [
        # 13 cores of a machine were busy beside a norm of 4.4 µs
        (0.0044, Time(0.1613, 0.0374)),
        (0.0051, Time(0.0070, 0.0005)),
        (0.5, Time(1.0, 0.07)),
    ],
)
def test_a_noisy_measurement_calls_no_claim_false(claimed: float, time: Time) -> None:
    found = contradicted(CLAIM, trace(claimed), "d", "a GPU", {KEY: time})
    assert (found.found, found.is_false) == (NO_TIMES, False)
    assert "too noisy to tell" in found.why
    (line,) = EvaluatedChange("cuda", (), [found]).unmeasured
    assert "RIGHT, TIMES UNKNOWN (measured are" in line
    # what it does not contradict stands
    assert contradicted(CLAIM, trace(time.latency), "d", "a GPU", {KEY: time}) == CLAIM


@pytest.mark.parametrize(
    ("claimed", "speedup", "time", "stands"),
    [
        # an H100's norm of one token: its reference took 0.111 ms, then 0.036 ms
        (0.0045, 24.50, Time(0.0031, 0.0008, 11.73), True),
        (0.0044, 31.83, Time(0.0035, 0.0007, 11.09), True),
        (0.0044, 120.0, Time(0.0035, 0.0007, 11.09), False),
        # and of 8,192 tokens: 0.790 ms
        (0.0714, 11.08, Time(0.0716, 0.0016, 11.04), True),
        (0.0714, 15.60, Time(0.0716, 0.0016, 11.04), False),
    ],
)
def test_a_reference_of_a_short_call_may_have_taken_its_launches(
    claimed: float, speedup: float, time: Time, stands: bool
) -> None:
    of = trace(claimed)
    of["evaluation"]["performance"]["speedup_factor"] = speedup
    found = contradicted(CLAIM, of, "d", "a GPU", {KEY: time})
    assert (found == CLAIM) == stands


@pytest.mark.parametrize(
    ("claimed", "time"),
    [
        # an H100's norms of few tokens, measured twice; three spreads are over a half
        (0.0038, Time(0.0043, 0.0009)),
        (0.0053, Time(0.0065, 0.0007)),
        # a solution that takes now 1 ms and now 3
        (0.85, Time(1.0, 2.0)),
    ],
)
def test_a_noisy_time_stands_and_its_half_does_not(claimed: float, time: Time) -> None:
    assert contradicted(CLAIM, trace(claimed), "d", "a GPU", {KEY: time}) == CLAIM
    half = contradicted(CLAIM, trace(claimed / 2), "d", "a GPU", {KEY: time})
    assert half.found == NO_TIMES


def test_the_reference_of_a_long_call_did_not_take_launches() -> None:
    of = trace(1.0)
    of["evaluation"]["performance"]["speedup_factor"] = 1.39
    rough = Time(1.0, 0.3, 1.0)
    assert contradicted(CLAIM, of, "d", "a GPU", {KEY: rough}).found == NO_TIMES


@pytest.mark.parametrize("name", ["speedup_factor", "reference_latency_ms"])
def test_a_speedup_over_a_reference_that_was_not_timed_is_unknown(name: str) -> None:
    of = trace(1.0)
    of["evaluation"]["performance"][name] = 1000.0
    found = contradicted(CLAIM, of, "d", "a GPU", {KEY: Time(1.0, 0.01)})
    assert (found.found, found.why) == (NO_TIMES, "(no reference was timed here)")


def test_claims_that_are_all_too_short_to_tell_are_unknown() -> None:
    other = replace(CLAIM, line=4)
    (one,) = without_any_time([CLAIM], {0: "rough"})
    assert (one.found, one.why) == (NO_TIMES, "(rough)")
    # beside one that the clock can tell, what is within the noise stands
    both = [CLAIM, other]
    assert without_any_time(both, {0: "rough", 1: ""}) == both
    # beside one of another solution, one that was not measured, one that is false, not
    for beside, noises in (
        (replace(other, solution="t"), {0: "rough", 1: ""}),
        # of the same name, of another definition
        (replace(other, file="traces/a/x/e.jsonl"), {0: "rough", 1: ""}),
        (other, {0: "rough"}),
        (replace(other, found=OTHER_TIMES), {0: "rough", 1: ""}),
    ):
        first, second = without_any_time([CLAIM, beside], noises)
        assert (first.found, second) == (NO_TIMES, beside)
    bad = replace(CLAIM, found=OTHER_TIMES, why="x")
    assert without_any_time([bad], {0: "rough"}) == [bad]


def test_a_time_of_other_hardware_is_not_compared() -> None:
    of_another = trace(1.0, "another GPU")
    found = contradicted(CLAIM, of_another, "d", "a GPU", {KEY: Time(2.0, 0.01)})
    assert (found.found, found.is_false) == (NO_TIMES, False)
    assert found.why == "(of another GPU, not of this run)"
    # what states no time says of this hardware what the run shows, and of no other
    del of_another["evaluation"]["performance"]
    found = contradicted(CLAIM, of_another, "d", "a GPU", {})
    assert found.found == NO_TIMES
    assert contradicted(CLAIM, of_another, "d", "another GPU", {}) == CLAIM


def test_a_wrong_value_is_not_covered_by_a_wrong_time() -> None:
    bad = replace(CLAIM, found="INCORRECT_NUMERICAL", why="x")
    assert contradicted(bad, trace(1.0), "d", "a GPU", {KEY: Time(2.0)}) == bad


def test_claims_of_one_reason_are_one_line() -> None:
    bad = [
        TraceClaim("f", n, "s", "u", "PASSED", "INCORRECT_NUMERICAL", "x")
        for n in (1, 2)
    ]
    assert EvaluatedChange("cpu", (), bad).against == [
        "f 2 lines: s claims PASSED, is INCORRECT_NUMERICAL x"
    ]
