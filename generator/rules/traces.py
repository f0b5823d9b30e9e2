"""Traces: each is of a known solution and workload, with numbers that can be true."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from generator.problems import Problem, error, note, warning
from generator.problems.messages import did_you_mean, plural, quote, show

TRACE_DEFINITION = error("""trace-definition: A trace names another definition than its
    file does.
    Fix: Move the line to its definition's file.
    Finds: `"definition": "gemm_n8_k5"` in gemm_n8_k4.jsonl""")
TRACE_INCOMPLETE = error("""trace-incomplete: A trace has no solution or no evaluation:
    it is a workload, not a trace.
    Fix: Move the line to workloads/, or run the solution.
    Finds: `"evaluation": null`""")
TRACE_WORKLOAD = error("""trace-workload: A trace is of a workload that the definition
    does not have, or has otherwise.
    Fix: Run the solution on the dataset's workloads.
    Finds: a uuid that is not in workloads/""")
TRACE_SOLUTION = error("""trace-solution: A trace is of a solution that the dataset does
    not have.
    Fix: Add the solution, or remove its traces.
    Finds: `"solution": "gone"`""")
TRACE_AUTHOR = error("""trace-author: A trace lies in another author's folder than its
    solution.
    Fix: Move it to the folder of the solution's author.
    Finds: a solution of alice in traces/bob/""")
TRACE_DUPLICATE = warning("""trace-duplicate: A solution has two traces of one workload.
    Fix: Keep the newer one.
    Finds: the same solution and uuid in lines 3 and 9""")
TRACE_COVERAGE = warning("""trace-coverage: A solution was not run on all workloads of
    its definition.
    Fix: Run it on the others as well.
    Finds: 5 of 8 workloads have a trace of it""")
TRACE_BASELINE_FAILED = error("""trace-baseline-failed: A baseline's trace is not
    PASSED: reference and kernel disagree.
    Fix: Find out which side is wrong before anything is built on the reference.
    Finds: `"status": "INCORRECT_NUMERICAL"` in traces/baseline/""")
TRACE_NUMBERS = error("""trace-numbers: A trace's numbers can't be true, or contradict
    each other.
    Fix: Measure again.
    Finds: `"latency_ms": -1`, or a speedup that is not the ratio of the latencies""")
TRACE_NO_MEASUREMENT = note("""trace-no-measurement: A PASSED trace lacks its errors or
    its latencies.
    Fix: Run the benchmark again with correctness and performance recorded.
    Finds: `"status": "PASSED"` with `"performance": null`""")

_SPEEDUP_SLACK = 0.02
"""Of the stated speedup: latencies are often rounded."""


@dataclass
class TraceTargets:
    """Solutions and workloads that a definition's traces may name, and those they covered.

    `workloads` maps uuid to axes, `solutions` name to author.
    """

    definition: str
    workloads: Mapping[str, Mapping[str, int]]
    solutions: Mapping[str, str]
    covered: dict[str, dict[str, int]] = field(default_factory=dict)


def check_trace(
    line: Mapping[str, Any], author: str | None, known: TraceTargets, number: int
) -> Iterator[Problem]:
    """Yield the Problems of one trace that fits the schema.

    `author` is the folder's, None where traces lie without one.
    """
    if line["definition"] != known.definition:
        message = (
            f"The definition is {quote(line['definition'])}, but the file is named "
        )
        yield TRACE_DEFINITION.at(f"{message}{quote(known.definition)}.", "definition")
    uuid = line["workload"]["uuid"]
    if uuid not in known.workloads:
        message = f"There is no workload {quote(uuid)}."
        yield TRACE_WORKLOAD.at(message, "workload", "uuid")
    elif known.workloads[uuid] != line["workload"]["axes"]:
        message = f"The workload {quote(uuid)} has other axes in workloads/."
        yield TRACE_WORKLOAD.at(message, "workload", "axes")
    solution, evaluation = line.get("solution"), line.get("evaluation")
    if solution is None or evaluation is None:
        missing = "solution" if solution is None else "evaluation"
        yield TRACE_INCOMPLETE.at(f"The trace has no {missing}.", missing)
        return
    owner = known.solutions.get(solution)
    if owner is None:
        guess = did_you_mean(solution, known.solutions)
        message = f"There is no solution {quote(solution)}.{guess}"
        yield TRACE_SOLUTION.at(message, "solution")
    elif author not in (None, owner):
        message = f"The solution {quote(solution)} is of the author {quote(owner)}, "
        yield TRACE_AUTHOR.at(f"{message}the folder is {quote(author)}.", "solution")
    first = known.covered.setdefault(solution, {}).setdefault(uuid, number)
    if first != number:
        message = f"Line {first} is a trace of this solution and workload too."
        yield TRACE_DUPLICATE.at(message)
    status = evaluation["status"]
    if status != "PASSED" and "baseline" in (author, owner):
        message = f"The baseline {quote(solution)} is {status}."
        yield TRACE_BASELINE_FAILED.at(message, "evaluation", "status")
    yield from _check_numbers(evaluation)
    for part in ("correctness", "performance") if status == "PASSED" else ():
        if not evaluation.get(part):
            message = f"The trace is PASSED without {part}."
            yield TRACE_NO_MEASUREMENT.at(message, "evaluation")


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


_NUMBERS = {
    "correctness": ("max_relative_error", "max_absolute_error"),
    "performance": ("latency_ms", "reference_latency_ms", "speedup_factor"),
}


def _check_numbers(evaluation: Mapping[str, Any]) -> Iterator[Problem]:
    measured = {}
    for part, names in _NUMBERS.items():
        for name in names:
            value = (evaluation.get(part) or {}).get(name)
            if value is None:
                continue
            # flashinfer-bench writes "Infinity" and "NaN" where an output has them
            number = float(value)
            is_text = isinstance(value, str) and evaluation["status"] != "PASSED"
            lowest_fits = number >= 0 if part == "correctness" else number > 0
            if math.isfinite(number) and lowest_fits:
                measured[name] = number
            elif not is_text or number < 0:
                message = f"The {name} is {show(value)}."
                yield TRACE_NUMBERS.at(message, "evaluation", part, name)
    if measured.keys() >= set(_NUMBERS["performance"]):
        ratio = measured["reference_latency_ms"] / measured["latency_ms"]
        stated = measured["speedup_factor"]
        if not abs(ratio - stated) <= _SPEEDUP_SLACK * stated + 0.01:
            message = (
                f"The speedup is {show(stated)}, the latencies' ratio {ratio:.4g}."
            )
            where = ("evaluation", "performance", "speedup_factor")
            yield TRACE_NUMBERS.at(message, *where)
