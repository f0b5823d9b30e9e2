"""The table of times says how far each may be off, and what it is a mean of."""

from __future__ import annotations

from typing import Any

import pytest

from generator.evaluation.report import evaluation_report
from generator.evaluation.verdict import PASSED, CaseVerdict, SolutionVerdict
from generator.reports import printed

TIMING: dict[str, Any] = {
    "latency_ms": 0.02451,
    "error_ms": 0.00187,
    "spread_ms": 0.0007,
    "host_ms": 0.1,
    "reference_latency_ms": 0.0294,
    "speedup_factor": 1.2,
    "speedup_error": 0.06,
    "production_latency_ms": 0.0245,
    "resolution_ms": 0.002,
    "resolved": True,
    "settled": True,
    "fresh": True,
    "starts": 1,
}
STARTS = {"starts": 7, "starts_untimed": 1, "deviation_ms": 4e-4, "outliers": 0}


def printed_times(timing: dict[str, Any], form: str) -> str:
    case = CaseVerdict("w", PASSED, timing=timing)
    about = ("fast", "me", "norm_h8", "norm", "fast.json", PASSED)
    return "".join(
        printed(evaluation_report([SolutionVerdict(*about, cases=[case])]), form)
    )


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_a_time_of_one_start_has_its_error(form: str) -> None:
    text = printed_times(TIMING, form)
    assert "0.0245 ± 0.0019" in text
    assert "1.20 ± 0.06" in text
    assert "starts" not in text


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_times_of_starts_say_what_they_are_of(form: str) -> None:
    text = printed_times({**TIMING, **STARTS}, form)
    assert "7 starts and 1 without times, 0.4 µs apart" in text
    assert "far from the others" not in text
    text = printed_times({**TIMING, **STARTS, "starts_untimed": 0, "outliers": 2}, form)
    assert "7 starts, 0.4 µs apart; 2 of the starts far from the others" in text


def test_a_time_without_a_reference_has_no_speedup() -> None:
    names = ("reference_latency_ms", "speedup_factor", "speedup_error")
    timing = {name: value for name, value in TIMING.items() if name not in names}
    text = printed_times(timing, "text")
    assert "0.0245 ± 0.0019" in text
    assert text.count("±") == 1
