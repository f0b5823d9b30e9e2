"""Inside the sandbox: compare one `run()` with its op's oracle at the dataset's workloads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch

from generator.rules.runtime_rules import EXECUTE_NOT_RUN, EXECUTE_WORKLOAD
from generator.running.described import first_finding
from generator.running.free_memory import is_exhaustion, needed_bytes
from generator.running.workloads import Workloads, why_not_asked
from generator.validation.execute.said import SOURCE, Said, line_of, shown
from kernel_judge.checks import CHECKS
from kernel_judge.definition import Case, Definition
from kernel_judge.obstacle import Kind, Obstacle
from kernel_judge.reference import load_run
from kernel_judge.skipping import Skip
from kernel_judge.subject import Op, Subject

FIT_SECONDS, ALL_SECONDS = 1.0, 60.0
"""Seconds of the CPU that a comparison at a workload gets, of those that fit and of all."""
_CHECKS = ("test_output_shape", "test_output_dtype", "test_matches_oracle")
_CPU = torch.device("cpu")


def at_workloads(job: Mapping[str, Any], definition: Definition, op: Op) -> list[Said]:
    """Return what is wrong at the workloads that `job` asks for, and how many were not.

    Of several that are wrong the first is reported, with the number of the others.
    """
    reference = partial(load_run, job["reference"], SOURCE)
    subject = Subject(definition, op, reference, unresolved=job["unresolved"])
    chosen = Workloads(Path(job["dataset"]), job["workloads"])
    try:
        cases = chosen.of(subject)
    except Exception as error:  # noqa: BLE001 - the file's own rules say what is wrong
        why = f"its workloads can't be used: {shown(error)}"
        return [(EXECUTE_NOT_RUN.id, f"At workloads it was not called: {why}.", None)]
    wrong: list[Said] = []
    left = Counter[str]()
    for case in cases:
        try:
            wrong += _wrong(job, subject, case)
        except Skip as error:
            # that nothing is known to compare with is no matter of a workload
            if error.obstacle.kind is not Kind.UNRESOLVED:
                left[str(error)] += 1
    if len(wrong) > 1:
        rule, what, line = wrong[0]
        others = len(wrong) - 1
        more = "So is 1 other workload." if others == 1 else f"So are {others} others."
        wrong = [(rule, f"{what} {more}", line)]
    if left:
        why = "; ".join(f"{count}: {why}" for why, count in left.most_common(3))
        what = f"{left.total()} of {len(cases)} workloads were not compared ({why})."
        wrong.append((EXECUTE_NOT_RUN.id, what, None))
    return wrong


def _wrong(job: Mapping[str, Any], subject: Subject, case: Case) -> Iterator[Said]:
    """Yield the first defect at a workload. Raises Skip where it is not compared."""
    fits = job["workloads"] == "fit"
    if fits and (obstacle := why_not_asked(subject.definition, case, _CPU)) is not None:
        raise Skip(obstacle)
    needed = needed_bytes(subject.definition, case, subject.op.peak_bytes)
    if needed > (limit := job["memory_bytes"]):
        what = f"needs {needed / 2**30:.1f} GiB, the sandbox has {limit / 2**30:.1f}"
        raise Skip(Obstacle(Kind.NEEDS_MEMORY, what))
    seconds = FIT_SECONDS if fits else ALL_SECONDS
    trial = subject.trial(case, cpu_seconds=seconds)
    try:
        with trial.limited():
            for name in _CHECKS:
                checked = CHECKS[name](subject, trial)
                if checked.skipped is not None:
                    raise Skip(checked.skipped)
                if checked.defect is not None:
                    yield _said(case, first_finding(checked.defect))
                    return
    except Skip as error:
        if error.obstacle.kind is Kind.TOO_LONG:
            error = Skip(Obstacle(Kind.TOO_LONG, f"over {seconds:g} s of the CPU"))
        raise error from None
    except BaseException as error:  # noqa: BLE001 - SystemExit is no answer either
        if is_exhaustion(error):
            raise Skip(Obstacle(Kind.NEEDS_MEMORY, shown(error))) from None
        yield _said(case, f"it raised {shown(error)}", line_of(error))


def _said(case: Case, what: str, line: int | None = None) -> Said:
    sizes = ", ".join(f"{axis} {size}" for axis, size in case.axes.items())
    return EXECUTE_WORKLOAD.id, f"At {case.name} ({sizes}): {what}.", line
