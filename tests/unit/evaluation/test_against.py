"""Times against earlier ones, waivers, and claims that a measurement contradicts."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from generator.evaluation.against import (
    Key,
    Time,
    Waiver,
    compared,
    contradiction,
    times_in,
    times_of,
    waivers_of,
)
from generator.evaluation.clock.offsets import error_of_one
from generator.problems import Failure
from generator.review.earlier_times import times_at

KEY: Key = ("norm", "H100", "fast", "u1")
TODAY = date(2026, 11, 24)
OF_STARTS = Time(0.025, 0.0007, error=0.0003, is_of_starts=True)


def slower(before: Time, after: Time, *waivers: Waiver) -> list[Any]:
    return compared({KEY: before}, {KEY: after}, waivers, TODAY)


@pytest.mark.parametrize(
    ("before", "after", "is_slower"),
    [
        (Time(1.0, 0.01), Time(1.10, 0.01), True),
        # within 5 %
        (Time(1.0, 0.0), Time(1.04, 0.0), False),
        # beyond 5 %, within both spreads
        (Time(1.0, 0.06), Time(1.10, 0.06), False),
        (Time(1.0, 0.04), Time(1.10, 0.04), True),
        (Time(1.0, 0.01), Time(0.5, 0.01), False),
        # beyond 5 %, within what processes of one start differ by
        (Time(0.025, 0.0007), Time(0.0275, 0.0007), False),
        (Time(0.025, 0.0007), Time(0.028, 0.0007), True),
        # of several starts: that is known, and no spread of calls is in their mean
        (OF_STARTS, replace(OF_STARTS, latency=0.0264), True),
        (OF_STARTS, replace(OF_STARTS, latency=0.0264, error=0.0015), False),
        (OF_STARTS, replace(OF_STARTS, latency=0.0262), False),
        (OF_STARTS, Time(0.0268, 0.0007), False),
        (OF_STARTS, Time(0.0271, 0.0007), True),
    ],
)
def test_slower_is_beyond_5_percent_and_what_both_may_be_off_by(
    before: Time, after: Time, is_slower: bool
) -> None:
    assert bool(slower(before, after)) is is_slower


def test_only_what_both_have_is_compared() -> None:
    other = (*KEY[:3], "u2")
    assert not compared({KEY: Time(1.0)}, {other: Time(9.0)})


def test_waiver_says_why_until_its_day() -> None:
    waiver = Waiver("norm", "fast", "a driver's fault", TODAY)
    (one,) = slower(Time(1.0), Time(2.0), waiver)
    assert one.waiver == "a driver's fault"
    for other in (
        Waiver("norm", "fast", "over", date(2026, 11, 23)),
        Waiver("norm", "other", "x", TODAY),
        Waiver("norm", "fast", "x", TODAY, workload="u2"),
        Waiver("norm", "fast", "x", TODAY, hardware="H200"),
    ):
        (one,) = slower(Time(1.0), Time(2.0), other)
        assert one.waiver == ""


def trace(latency: Any = 1.0, **more: Any) -> dict[str, Any]:
    value: dict[str, Any] = {
        "definition": "norm",
        "solution": "fast",
        "workload": {"uuid": "u1", "axes": {"n": 1}},
        "evaluation": {
            "status": "PASSED",
            "environment": {"hardware": "H100"},
            "timestamp": "2026-11-24T10:00:00",
            "performance": {
                "latency_ms": latency,
                "speedup_factor": 2.0,
                "spread_ms": 0.1,
            },
        },
    }
    value["evaluation"] |= more
    return value


def lines(*values: Any) -> bytes:
    return "".join(json.dumps(v) + "\n" for v in values).encode()


def test_last_passed_trace_counts() -> None:
    data = lines(
        trace(3.0, timestamp="2026-11-24T12:00:00"),
        trace(1.0),
        trace(9.0, status="RUNTIME_ERROR", timestamp="2026-12-01"),
    )
    found = times_in([("t.jsonl", data + b"no json\n[]\n{}\n")])
    assert found == {KEY: Time(3.0, 0.1, 2.0, "2026-11-24T12:00:00")}


@pytest.mark.parametrize(
    ("more", "error", "is_of_starts"),
    [
        ({"error_ms": 0.002, "starts": 1}, 0.002, False),
        ({"error_ms": 0.0004, "starts": 8}, 0.0004, True),
        # another program's, or damaged: of one start, whose error is what is known of one
        ({}, error_of_one(), False),
        ({"starts": 8}, error_of_one(), False),
        ({"error_ms": -1.0, "starts": 8}, error_of_one(), False),
        ({"error_ms": float("nan"), "starts": 8}, error_of_one(), False),
        ({"error_ms": "0", "starts": 8}, error_of_one(), False),
        ({"error_ms": 0.001, "starts": float("inf")}, 0.001, True),
        ({"error_ms": 0.001, "starts": None}, 0.001, False),
    ],
)
def test_error_of_a_trace(more: Any, error: float, is_of_starts: bool) -> None:
    value = trace()
    value["evaluation"]["performance"] |= more
    (time,) = times_in([("t.jsonl", lines(value))]).values()
    assert (time.error, time.is_of_starts) == (error, is_of_starts)


@pytest.mark.parametrize("latency", [None, "1", True, 0.0, -1.0, float("nan"), 1e300])
def test_latency_that_is_no_time_is_none(latency: Any) -> None:
    assert times_in([("t.jsonl", lines(trace(latency)))]) == {}


def test_results_of_an_evaluation_have_times() -> None:
    timing = {"latency_ms": 0.5, "spread_ms": 0.01, "speedup_factor": 4.0}
    case = {"verdict": "PASSED", "workload": {"uuid": "u1"}, "timing": timing}
    value = {
        "environment": {"hardware": "H100"},
        "timestamp": "t",
        "solutions": [{"definition": "norm", "solution": "fast", "cases": [case]}],
    }
    data = json.dumps(value).encode()
    assert times_in([("results.json", data)]) == {KEY: Time(0.5, 0.01, 4.0, "t")}
    with pytest.raises(Failure, match="no results"):
        times_in([("results.json", b"{}")])
    with pytest.raises(Failure, match="no JSON"):
        times_in([("results.json", b"{")])


def dataset(root: Path, latency: float) -> Path:
    path = root / "traces/alice/rmsnorm/norm.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines(trace(latency)))
    return root


def test_times_of_a_revision(tmp_path: Path) -> None:
    root = dataset(tmp_path / "data", 1.0)
    named = ("-c", "user.name=t", "-c", "user.email=t@t")
    for words in (("init", "-q"), ("add", "-A"), (*named, "commit", "-qm", "first")):
        subprocess.run(["git", "-C", str(root), *words], check=True)
    dataset(root, 2.0)
    before, after = times_at(root, "HEAD"), times_of(root)
    assert (before[KEY].latency, after[KEY].latency) == (1.0, 2.0)
    for bad in ("nothing", "--all", "HEAD~7"):
        with pytest.raises(Failure, match=f"There is no revision '{bad}'"):
            times_at(root, bad)
    for words in (("rm", "-rqf", "traces"), (*named, "commit", "-qm", "none")):
        subprocess.run(["git", "-C", str(root), *words], check=True)
    with pytest.raises(Failure, match="'HEAD' has no traces"):
        times_at(root, "HEAD")


def test_a_folder_without_traces_is_said(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="no traces"):
        times_of(tmp_path)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "no list `waivers`"),
        ({"waivers": [3]}, "/waivers/0"),
        ({"waivers": [{"definition": "d"}]}, "lacks solution, reason, until"),
        (
            {"waivers": [dict.fromkeys(("definition", "solution", "until"), "x")]},
            "lacks reason",
        ),
        (
            {
                "waivers": [
                    {
                        "definition": "d",
                        "solution": "s",
                        "reason": "r",
                        "until": "soon",
                    }
                ]
            },
            "no day",
        ),
        (
            {
                "waivers": [
                    {
                        "definition": "d",
                        "solution": "s",
                        "reason": "r",
                        "until": "2026-12-01",
                        "when": "x",
                    }
                ]
            },
            "has no when",
        ),
    ],
)
def test_waiver_without_reason_or_day_is_refused(
    tmp_path: Path, value: Any, said: str
) -> None:
    path = tmp_path / "verification/waivers.json"
    path.parent.mkdir()
    path.write_text(json.dumps(value))
    with pytest.raises(Failure, match=said):
        waivers_of(tmp_path)


def test_waivers_are_read(tmp_path: Path) -> None:
    assert waivers_of(tmp_path) == []
    one = {"definition": "d", "solution": "s", "reason": "r", "until": "2026-12-01"}
    path = tmp_path / "verification/waivers.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"waivers": [one]}))
    assert waivers_of(tmp_path) == [Waiver("d", "s", "r", date(2026, 12, 1))]


@pytest.mark.parametrize(
    ("latency", "reference", "speedup", "fails"),
    [
        (1.0, None, 2.0, False),
        # three spreads of 0.1 are more than the fifth that is allowed
        (0.81, None, None, False),
        (0.79, None, None, True),
        # too modest a claim stands
        (3.0, None, 0.5, False),
        (1.0, None, 2.9, True),
        (1.0, None, 2.39, False),
        (1.0, None, 2.41, True),
        (None, None, 2.9, True),
        (1.0, 2.9, None, True),
        (1.0, 2.9, 2.0, True),
        (True, "x", [], False),
    ],
)
def test_claims_beyond_what_is_allowed_fail(
    latency: Any, reference: Any, speedup: Any, fails: bool
) -> None:
    claim = {
        "latency_ms": latency,
        "reference_latency_ms": reference,
        "speedup_factor": speedup,
        # what the author says of it counts for nothing
        "spread_ms": 1e6,
    }
    why = contradiction(claim, Time(1.0, 0.1, 2.0))
    assert bool(why) is fails
    assert ("measured" in why) is fails
