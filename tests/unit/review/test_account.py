"""What is believed of a report that the reference could have written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from generator.execution.sandbox import CommandOutcome
from generator.review.account import Account, account

GREEN = CommandOutcome("exited", 0)
RED = replace(GREEN, exit_status=1)
BOTH = ("a", "b")


def of(reported: str, outcome: CommandOutcome = GREEN, **rest: object) -> Account:
    """Account for a report written as `a=passed b=failed`."""
    pairs = [tuple(word.split("=")) for word in reported.split()]
    return account(outcome, BOTH, pairs, **rest)


def test_a_complete_report_is_believed() -> None:
    found = of("a=passed b=skipped")
    assert not found.problems
    assert (found.passed, found.failed, found.skipped) == (("a",), (), ("b",))


def test_a_red_report_is_believed_too() -> None:
    found = of("a=passed b=failed", RED)
    assert not found.problems
    assert found.failed == ("b",)


@pytest.mark.parametrize(
    ("reported", "outcome", "said"),
    [
        ("a=passed", GREEN, "not reported: b"),
        ("", GREEN, "not reported: a, b"),
        ("a=passed b=passed c=passed", GREEN, "reported and not expected: c"),
        ("a=passed b=failed b=passed", GREEN, "reported more than once: b"),
        ("a=passed b=failed", GREEN, "it ended with 0; the report says 1"),
        ("a=passed b=passed", RED, "it ended with 1; the report says 0"),
        ("a=passed b=shiny", GREEN, "it ended with 0; the report says 1"),
        (
            "a=passed b=passed",
            replace(GREEN, status="limit", limit="memory", exit_status=None),
            "it was killed at a limit: memory",
        ),
        (
            "a=passed b=passed",
            replace(GREEN, status="killed", signal=9, exit_status=None),
            "it was killed by signal 9",
        ),
        (
            "a=passed b=passed",
            replace(GREEN, status="not started", exit_status=None, detail="no work"),
            "it was not started: no work",
        ),
    ],
)
def test_a_report_that_does_not_add_up_is_not(reported, outcome, said) -> None:
    found = of(reported, outcome)
    assert said in found.problems


def test_a_test_reported_twice_has_failed() -> None:
    assert of("a=passed b=failed b=passed").failed == ("b",)


def test_a_judge_that_passes_all_is_found_by_the_canary() -> None:
    found = of("a=passed b=passed c=passed", canaries={"c": "a"})
    assert "must fail and did not: c" in found.problems


def test_a_canary_that_failed_is_no_problem() -> None:
    assert not of("a=passed b=passed c=failed", canaries={"c": "a"}).problems


@pytest.mark.parametrize(
    ("reported", "believed"),
    [
        ("a=skipped b=passed c=skipped", True),
        ("a=passed b=passed c=skipped", False),
        ("a=skipped b=passed c=passed", False),
        ("b=passed c=skipped", False),
    ],
)
def test_a_canary_is_excused_only_with_its_test(reported, believed) -> None:
    assert (not of(reported, canaries={"c": "a"}).problems) is believed
