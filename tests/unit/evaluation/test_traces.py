from __future__ import annotations

import json
import math
from typing import Any

import pytest

from generator.dataset.schema import check
from generator.evaluation.traces import RESULTS, trace_files
from generator.evaluation.verdict import CaseVerdict, SolutionVerdict, worst

WORKLOAD = {"uuid": "u", "axes": {"n": 1}, "inputs": {"x": {"type": "random"}}}
TIMES = {"latency_ms": 1.0, "reference_latency_ms": 3.0, "speedup_factor": 3.0}
ERRORS = {"max_abs": 0.5, "max_rel": math.nan}
PATH = "traces/me/rmsnorm/rmsnorm_h128.jsonl"
ENVIRONMENT = {"hardware": "H200", "libs": {"torch": "2.11"}}


def files(*cases: CaseVerdict, conditions: Any = None, **more: Any) -> dict[str, bytes]:
    first = worst(cases)
    about = ("fast", "me", "rmsnorm_h128", "rmsnorm", "fast.json", first.verdict)
    verdict = SolutionVerdict(*about, cases=cases, conditions=conditions or {})
    return trace_files([verdict], ENVIRONMENT, "2026-01-01T00:00:00+00:00", **more)


def traces(*cases: CaseVerdict, **more: Any) -> list[dict[str, Any]]:
    content = files(*cases, **more).get(PATH, b"").decode()
    found = [json.loads(line) for line in content.splitlines()]
    for trace in found:
        assert check(trace, "trace", PATH) == ()
    return found


def test_passed_trace_has_errors_and_times() -> None:
    case = CaseVerdict("w", "PASSED", "", ERRORS, WORKLOAD, TIMES)
    (trace,) = traces(case)
    assert trace["evaluation"]["performance"] == TIMES
    errors = trace["evaluation"]["correctness"]
    assert errors == {"max_relative_error": "NaN", "max_absolute_error": 0.5}


def test_times_of_starts_have_their_error() -> None:
    more = {"spread_ms": 0.1, "error_ms": 0.01, "speedup_error": 0.02, "starts": 8}
    by_start = {"by_start": [{"latency_ms": 1.0}], "deviation_ms": 0.01}
    timing = {**TIMES, **more, **by_start}
    (trace,) = traces(CaseVerdict("w", "PASSED", "", ERRORS, WORKLOAD, timing))
    assert trace["evaluation"]["performance"] == {**TIMES, **more}


def test_trace_has_verdict_and_reason_of_conditions() -> None:
    case = CaseVerdict("w", "PASSED", "", ERRORS, WORKLOAD, TIMES)
    broken = {"verdict": "broken", "reason": "alone: other bits"}
    under = {"batch": {**broken, "details": {"alone": "no"}}}
    (trace,) = traces(case, conditions=under)
    assert trace["evaluation"]["conditions"] == {"batch": broken}
    (trace,) = traces(case)
    assert "conditions" not in trace["evaluation"]


@pytest.mark.parametrize("keeps_hacks", [False, True])
def test_out_of_memory_is_a_runtime_error_of_others(keeps_hacks: bool) -> None:
    case = CaseVerdict("w", "OUT_OF_MEMORY", "2 GiB", {}, WORKLOAD)
    (trace,) = traces(case, keeps_hacks=keeps_hacks)
    assert trace["evaluation"]["status"] == "RUNTIME_ERROR"
    assert trace["evaluation"]["log"] == "OUT_OF_MEMORY: 2 GiB"


def test_passed_without_times_has_no_trace() -> None:
    assert traces(CaseVerdict("w", "PASSED", "", ERRORS, WORKLOAD)) == []


def test_case_of_no_workload_has_no_trace() -> None:
    assert traces(CaseVerdict("one-row", "TIMEOUT", "no answer")) == []


def test_wrong_trace_has_errors_alone() -> None:
    case = CaseVerdict("w", "INCORRECT_NUMERICAL", "off", ERRORS, WORKLOAD)
    (trace,) = traces(case)
    assert "performance" not in trace["evaluation"]
    assert trace["evaluation"]["log"] == "off"


def test_hack_has_the_nearest_status_and_its_reason() -> None:
    case = CaseVerdict("w", "REWARD_HACK", "a thread", {}, WORKLOAD)
    (trace,) = traces(case)
    assert trace["evaluation"]["status"] == "RUNTIME_ERROR"
    assert trace["evaluation"]["log"] == "REWARD_HACK: a thread"
    assert "correctness" not in trace["evaluation"]


def test_results_hold_all_cases_as_strict_json() -> None:
    found = files(CaseVerdict("one-row", "PASSED", "", ERRORS))
    value = json.loads(found[RESULTS], parse_constant=lambda name: 1 / 0)
    (solution,) = value["solutions"]
    assert [case["case"] for case in solution["cases"]] == ["one-row"]
