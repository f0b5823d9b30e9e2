"""Times that traces claim, against those that were measured again."""

from __future__ import annotations

from generator.evaluation.against import Time, claims_that_fail
from generator.review.solutions import (
    OTHER_TIMES,
    Claim,
    EvaluatedChange,
    contradicted,
)

KEY = ("d", "a GPU", "s", "one")
CLAIM = Claim("traces/a/x/d.jsonl", 3, "s", "one", "PASSED", "PASSED")


def test_a_time_that_is_too_short_is_a_false_claim() -> None:
    wrong = claims_that_fail({KEY: Time(1.0)}, {KEY: Time(2.0, 0.01)})
    (found,) = contradicted([CLAIM], wrong)
    assert found.found == OTHER_TIMES
    assert found.is_false
    (line,) = EvaluatedChange("cuda", (), [found]).against
    assert "line 3: s claims PASSED, is OTHER TIMES it claims 1.0000 ms" in line


def test_a_time_within_the_spread_stands() -> None:
    wrong = claims_that_fail({KEY: Time(1.9)}, {KEY: Time(2.0, 0.1)})
    assert contradicted([CLAIM], wrong) == [CLAIM]


def test_a_wrong_value_is_not_covered_by_a_wrong_time() -> None:
    wrong = claims_that_fail({KEY: Time(1.0)}, {KEY: Time(2.0)})
    bad = Claim("f", 1, "s", "one", "PASSED", "INCORRECT_NUMERICAL", "x")
    assert contradicted([bad], wrong) == [bad]


def test_claims_of_one_reason_are_one_line() -> None:
    bad = [
        Claim("f", n, "s", "u", "PASSED", "INCORRECT_NUMERICAL", "x") for n in (1, 2)
    ]
    assert EvaluatedChange("cpu", (), bad).against == [
        "f 2 lines: s claims PASSED, is INCORRECT_NUMERICAL x"
    ]
