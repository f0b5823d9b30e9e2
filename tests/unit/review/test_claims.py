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
    found = contradicted(CLAIM, trace(1.0), "d", {KEY: Time(2.0, 0.01)})
    assert found.found == OTHER_TIMES
    assert found.is_false
    (line,) = EvaluatedChange("cuda", (), [found]).against
    assert "line 3: s claims PASSED, is OTHER TIMES it claims 1.0000 ms" in line


def test_a_time_within_the_spread_stands() -> None:
    assert contradicted(CLAIM, trace(1.9), "d", {KEY: Time(2.0, 0.1)}) == CLAIM


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
    found = contradicted(CLAIM, trace(claimed), "d", {KEY: time})
    assert (found.found, found.is_false) == (NO_TIMES, False)
    assert "too noisy to tell" in found.why
    (line,) = EvaluatedChange("cuda", (), [found]).unmeasured
    assert "RIGHT, TIMES UNKNOWN (measured are" in line
    # what it does not contradict stands
    assert contradicted(CLAIM, trace(time.latency), "d", {KEY: time}) == CLAIM


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
    found = contradicted(CLAIM, of, "d", {KEY: time})
    assert (found == CLAIM) == stands


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
        (other, {0: "rough"}),
        (replace(other, found=OTHER_TIMES), {0: "rough", 1: ""}),
    ):
        first, second = without_any_time([CLAIM, beside], noises)
        assert (first.found, second) == (NO_TIMES, beside)
    bad = replace(CLAIM, found=OTHER_TIMES, why="x")
    assert without_any_time([bad], {0: "rough"}) == [bad]


def test_a_time_of_other_hardware_is_not_compared() -> None:
    of_another = trace(1.0, "another GPU")
    found = contradicted(CLAIM, of_another, "d", {KEY: Time(2.0, 0.01)})
    assert (found.found, found.is_false) == (NO_TIMES, False)
    assert found.why == "(of another GPU, not of this run)"
    # what states no time claims none
    del of_another["evaluation"]["performance"]
    assert contradicted(CLAIM, of_another, "d", {}) == CLAIM


def test_a_wrong_value_is_not_covered_by_a_wrong_time() -> None:
    bad = replace(CLAIM, found="INCORRECT_NUMERICAL", why="x")
    assert contradicted(bad, trace(1.0), "d", {KEY: Time(2.0)}) == bad


def test_claims_of_one_reason_are_one_line() -> None:
    bad = [
        TraceClaim("f", n, "s", "u", "PASSED", "INCORRECT_NUMERICAL", "x")
        for n in (1, 2)
    ]
    assert EvaluatedChange("cpu", (), bad).against == [
        "f 2 lines: s claims PASSED, is INCORRECT_NUMERICAL x"
    ]
