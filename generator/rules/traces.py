"""Traces: each is of a known solution and workload, with numbers that can be true."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from generator.problems import Problem
from generator.problems.messages import did_you_mean, plural, quote, show
from generator.problems.rule import Rule, error, note, warning

TRACE_DEFINITION = error(
    "trace-definition",
    "A trace names another definition than its file does.",
    "Move the line to its definition's file.",
    '`"definition": "gemm_n8_k5"` in gemm_n8_k4.jsonl',
)
TRACE_INCOMPLETE = error(
    "trace-incomplete",
    "A trace has no solution or no evaluation: it is a workload, not a trace.",
    "Move the line to workloads/, or run the solution.",
    '`"evaluation": null`',
)
TRACE_WORKLOAD = error(
    "trace-workload",
    "A trace is of a workload that the definition does not have, or has otherwise.",
    "Run the solution on the dataset's workloads.",
    "a uuid that is not in workloads/",
)
TRACE_SOLUTION = error(
    "trace-solution",
    "A trace is of a solution that the dataset does not have.",
    "Add the solution, or remove its traces.",
    '`"solution": "gone"`',
)
TRACE_AUTHOR = error(
    "trace-author",
    "A trace lies in another author's folder than its solution.",
    "Move it to the folder of the solution's author.",
    "a solution of alice in traces/bob/",
)
TRACE_DUPLICATE = warning(
    "trace-duplicate",
    "A solution has two traces of one workload.",
    "Keep the newer one.",
    "the same solution and uuid in lines 3 and 9",
)
TRACE_COVERAGE = warning(
    "trace-coverage",
    "A solution was not run on all workloads of its definition.",
    "Run it on the others as well.",
    "5 of 8 workloads have a trace of it",
)
TRACE_BASELINE_FAILED = error(
    "trace-baseline-failed",
    "A baseline's trace is not PASSED: reference and kernel disagree.",
    "Find out which side is wrong before anything is built on the reference.",
    '`"status": "INCORRECT_NUMERICAL"` in traces/baseline/',
)
TRACE_NUMBERS = error(
    "trace-numbers",
    "A trace's numbers can't be true, or contradict each other.",
    "Measure again.",
    '`"latency_ms": -1`, or a speedup that is not the ratio of the latencies',
)
TRACE_NO_MEASUREMENT = note(
    "trace-no-measurement",
    "A PASSED trace lacks its errors or its latencies.",
    "Run the benchmark again with correctness and performance recorded.",
    '`"status": "PASSED"` with `"performance": null`',
)


_SPEEDUP_SLACK = 0.02
"""Of the stated speedup: latencies are often rounded."""


@dataclass
class TraceTargets:
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
    known: TraceTargets,
    file: str,
    number: int,
) -> Iterator[Problem]:
    """Yield the Problems of one trace that fits the schema.

    `author` is the folder's, None where traces lie without one.
    """

    def found(rule: Rule, message: str, pointer: str) -> Problem:
        return rule.problem(file, message, pointer=pointer, line=number)

    if line["definition"] != definition:
        message = f"The definition is {quote(line['definition'])}, but the file is "
        message += f"named {quote(definition)}."
        yield found(TRACE_DEFINITION, message, "/definition")
    uuid = line["workload"]["uuid"]
    if uuid not in known.workloads:
        message = f"There is no workload {quote(uuid)}."
        yield found(TRACE_WORKLOAD, message, "/workload/uuid")
    elif known.workloads[uuid] != line["workload"]["axes"]:
        message = f"The workload {quote(uuid)} has other axes in workloads/."
        yield found(TRACE_WORKLOAD, message, "/workload/axes")
    solution, evaluation = line.get("solution"), line.get("evaluation")
    if solution is None or evaluation is None:
        missing = "solution" if solution is None else "evaluation"
        yield found(TRACE_INCOMPLETE, f"The trace has no {missing}.", f"/{missing}")
        return
    if solution not in known.solutions:
        guess = did_you_mean(solution, known.solutions)
        message = f"There is no solution {quote(solution)}.{guess}"
        yield found(TRACE_SOLUTION, message, "/solution")
    elif author is not None and known.solutions[solution] != author:
        message = f"The solution {quote(solution)} is of the author "
        message += f"{quote(known.solutions[solution])}, the folder is {quote(author)}."
        yield found(TRACE_AUTHOR, message, "/solution")
    seen = known.covered.setdefault(solution, {})
    if seen.setdefault(uuid, number) != number:
        message = f"Line {seen[uuid]} is a trace of this solution and workload too."
        yield found(TRACE_DUPLICATE, message, "")
    is_baseline = "baseline" in (author, known.solutions.get(solution))
    status = evaluation["status"]
    if is_baseline and status != "PASSED":
        message = f"The baseline {quote(solution)} is {status}."
        yield found(TRACE_BASELINE_FAILED, message, "/evaluation/status")
    for where, what in _numbers(evaluation):
        yield found(TRACE_NUMBERS, what, f"/evaluation/{where}")
    if status == "PASSED":
        for part in ("correctness", "performance"):
            if not evaluation.get(part):
                message = f"The trace is PASSED without {part}."
                yield found(TRACE_NO_MEASUREMENT, message, "/evaluation")


def check_coverage(known: TraceTargets, file: str) -> Iterator[Problem]:
    """Yield a Problem for each solution that some workload has no trace of."""
    for solution, seen in known.covered.items():
        missing = [uuid for uuid in known.workloads if uuid not in seen]
        if missing and solution in known.solutions:
            count = plural(len(known.workloads), "workload")
            message = (
                f"The solution {quote(solution)} has no trace of {len(missing)} of "
                f"{count}, such as {quote(missing[0])}."
            )
            yield TRACE_COVERAGE.problem(file, message)


def _numbers(evaluation: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (pointer, sentence) for each number that can't be true."""
    correctness = evaluation.get("correctness") or {}
    for name in ("max_relative_error", "max_absolute_error"):
        value = correctness.get(name)
        if value is None:
            continue
        # flashinfer-bench writes "Infinity" and "NaN" where a kernel's output has them
        number = float(value)
        is_measured = evaluation["status"] == "PASSED" or not isinstance(value, str)
        if number < 0 or (is_measured and not math.isfinite(number)):
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
