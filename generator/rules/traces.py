"""Traces: each is of a known solution and workload, with numbers that can be true."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from generator.problems import Problem
from generator.rules.table import finding
from generator.wording import did_you_mean, plural, quote, show

_SPEEDUP_SLACK = 0.02
"""Of the stated speedup: latencies are often rounded."""


@dataclass
class Known:
    """Hold what a definition's traces may refer to, and what they covered.

    `workloads` maps uuid to axes, `solutions` name to author.
    """

    workloads: Mapping[str, Mapping[str, int]]
    solutions: Mapping[str, str]
    covered: dict[str, dict[str, int]] = field(default_factory=dict)


def check_trace(
    line: Mapping[str, Any],
    definition: str,
    author: str | None,
    known: Known,
    file: str,
    number: int,
) -> Iterator[Problem]:
    """Yield the Problems of one trace that fits the schema.

    `author` is the folder's, None where traces lie without one.
    """

    def found(rule: str, message: str, pointer: str) -> Problem:
        return finding(rule, file, message, pointer=pointer, line=number)

    if line["definition"] != definition:
        message = f"The definition is {quote(line['definition'])}, but the file is "
        message += f"named {quote(definition)}."
        yield found("trace-definition", message, "/definition")
    uuid = line["workload"]["uuid"]
    if uuid not in known.workloads:
        message = f"There is no workload {quote(uuid)}."
        yield found("trace-workload", message, "/workload/uuid")
    elif known.workloads[uuid] != line["workload"]["axes"]:
        message = f"The workload {quote(uuid)} has other axes in workloads/."
        yield found("trace-workload", message, "/workload/axes")
    solution, evaluation = line.get("solution"), line.get("evaluation")
    if solution is None or evaluation is None:
        missing = "solution" if solution is None else "evaluation"
        yield found("trace-incomplete", f"The trace has no {missing}.", f"/{missing}")
        return
    if solution not in known.solutions:
        guess = did_you_mean(solution, known.solutions)
        message = f"There is no solution {quote(solution)}.{guess}"
        yield found("trace-solution", message, "/solution")
    elif author is not None and known.solutions[solution] != author:
        message = f"The solution {quote(solution)} is of the author "
        message += f"{quote(known.solutions[solution])}, the folder is {quote(author)}."
        yield found("trace-author", message, "/solution")
    seen = known.covered.setdefault(solution, {})
    if seen.setdefault(uuid, number) != number:
        message = f"Line {seen[uuid]} is a trace of this solution and workload too."
        yield found("trace-duplicate", message, "")
    is_baseline = "baseline" in (author, known.solutions.get(solution))
    status = evaluation["status"]
    if is_baseline and status != "PASSED":
        message = f"The baseline {quote(solution)} is {status}."
        yield found("trace-baseline-failed", message, "/evaluation/status")
    for where, what in _numbers(evaluation):
        yield found("trace-numbers", what, f"/evaluation/{where}")
    if status == "PASSED":
        for part in ("correctness", "performance"):
            if not evaluation.get(part):
                message = f"The trace is PASSED without {part}."
                yield found("trace-no-measurement", message, "/evaluation")


def check_coverage(known: Known, file: str) -> Iterator[Problem]:
    """Yield a Problem for each solution that some workload has no trace of."""
    for solution, seen in known.covered.items():
        missing = [uuid for uuid in known.workloads if uuid not in seen]
        if missing and solution in known.solutions:
            count = plural(len(known.workloads), "workload")
            message = (
                f"The solution {quote(solution)} has no trace of {len(missing)} of "
                f"{count}, such as {quote(missing[0])}."
            )
            yield finding("trace-coverage", file, message)


def _numbers(evaluation: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (pointer, sentence) for each number that can't be true."""
    correctness = evaluation.get("correctness") or {}
    for name in ("max_relative_error", "max_absolute_error"):
        value = correctness.get(name)
        if value is not None and not (math.isfinite(value) and value >= 0):
            what = f"The {name} is {show(value)}."
            yield f"correctness/{name}", what
    performance = evaluation.get("performance") or {}
    latencies = {}
    for name in ("latency_ms", "reference_latency_ms", "speedup_factor"):
        value = performance.get(name)
        if value is None:
            continue
        if not (math.isfinite(value) and value > 0):
            yield f"performance/{name}", f"The {name} is {show(value)}."
        else:
            latencies[name] = value
    if len(latencies) == 3:
        ratio = latencies["reference_latency_ms"] / latencies["latency_ms"]
        stated = latencies["speedup_factor"]
        if not abs(ratio - stated) <= _SPEEDUP_SLACK * stated + 0.01:
            what = f"The speedup is {show(stated)}, the latencies' ratio {ratio:.4g}."
            yield "performance/speedup_factor", what
