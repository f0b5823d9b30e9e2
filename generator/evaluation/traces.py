"""Verdicts on workloads as traces that flashinfer-bench loads, and the results file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from generator.dataset.file_reading import is_absent, read_bytes
from generator.evaluation.verdict import (
    INCORRECT_NUMERICAL,
    JUDGE_ERROR,
    NEAREST,
    PASSED,
    REWARD_HACK,
    SKIPPED,
    CaseVerdict,
    SolutionVerdict,
)

RESULTS = "results.json"
_FIGURES = (
    *("latency_ms", "reference_latency_ms", "speedup_factor"),
    *("spread_ms", "error_ms", "speedup_error", "starts"),
    *("fraction_of_light", "fraction_of_measured"),
)


def trace_files(
    verdicts: Sequence[SolutionVerdict],
    environment: Mapping[str, Any],
    timestamp: str,
    *,
    keeps_hacks: bool = False,
) -> dict[str, bytes]:
    """Return path → content: the traces of workloads, and the results of all cases.

    A passed trace needs times, so that without timing it has none. `keeps_hacks` writes
    REWARD_HACK, which SOL-ExecBench knows and flashinfer-bench does not.
    """
    lines: dict[str, list[str]] = {}
    for verdict in verdicts:
        path = f"traces/{verdict.author}/{verdict.op_type}/{verdict.definition}.jsonl"
        for case in verdict.cases:
            trace = _trace(verdict, case, environment, timestamp, keeps_hacks)
            if trace is not None:
                lines.setdefault(path, []).append(json.dumps(trace, allow_nan=False))
    files = {
        path: "".join(f"{l}\n" for l in of_file) for path, of_file in lines.items()
    }
    results = {
        "environment": environment,
        "timestamp": timestamp,
        "solutions": [_finite(verdict.as_dict()) for verdict in verdicts],
    }
    files[RESULTS] = json.dumps(results, indent=1, allow_nan=False) + "\n"
    return {path: text.encode() for path, text in files.items()}


def after_earlier_traces(root: Path, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files with new traces after those that are there: none is overwritten.

    Raises OSError for one that can't be read.
    """
    joined = dict(files)
    for path in files:
        if path != RESULTS and not is_absent(root, path):
            before = read_bytes(root, path)
            joined[path] = before.rstrip(b"\n") + b"\n" * bool(before) + files[path]
    return joined


def _trace(
    verdict: SolutionVerdict,
    case: CaseVerdict,
    environment: Mapping[str, Any],
    timestamp: str,
    keeps_hacks: bool,
) -> dict[str, Any] | None:
    """Return the trace of a case, None where flashinfer-bench has no place for it."""
    # one that passed has a speedup over the reference, or no trace
    timing = case.timing or {}
    untimed = case.verdict == PASSED and "speedup_factor" not in timing
    unjudged = case.verdict in (SKIPPED, JUDGE_ERROR)
    if case.workload is None or unjudged or untimed:
        return None
    is_known = case.verdict == REWARD_HACK and keeps_hacks
    status = case.verdict if is_known else NEAREST.get(case.verdict, case.verdict)
    is_ours = status != case.verdict
    log = f"{case.verdict}: {case.reason}" if is_ours else case.reason
    evaluation: dict[str, Any] = {
        "status": status,
        "environment": dict(environment),
        "timestamp": timestamp,
        "log": log,
    }
    if status in (PASSED, INCORRECT_NUMERICAL):
        evaluation["correctness"] = {
            "max_relative_error": _number(case.metrics.get("max_rel", math.nan)),
            "max_absolute_error": _number(case.metrics.get("max_abs", math.nan)),
        }
    if status == PASSED:
        evaluation["performance"] = {n: timing[n] for n in _FIGURES if n in timing}
    if verdict.memory and verdict.memory["case"] == case.case:
        names = ("peak_memory_bytes", "output_bytes", "driver_bytes", "rivals")
        evaluation["memory"] = {name: verdict.memory[name] for name in names}
    if verdict.conditions:
        evaluation["conditions"] = {
            name: {key: condition[key] for key in ("verdict", "reason")}
            for name, condition in verdict.conditions.items()
        }
    return {
        "definition": verdict.definition,
        "workload": dict(case.workload),
        "solution": verdict.solution,
        "evaluation": evaluation,
    }


def _number(value: float) -> float | str:
    """Return a figure as flashinfer-bench writes it: JSON has no NaN."""
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else "Infinity"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
