"""The functions of an audit's tasks, which run in workers.

Each raises CannotRun, or what the definition's code raises while it is loaded.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from generator.dataset.definition import LoadedDefinition
from generator.dataset.paths import RECORDINGS, DatasetFile
from generator.execution.child import Link
from generator.execution.outcome import CannotRun
from generator.execution.process_limits import (
    MORE_BYTES,
    give_back_freed_memory,
    keep_freed_memory,
    limit_memory,
)
from generator.mutation.audit_job import AuditJob, prepare
from generator.mutation.mutant_workers import run_all, waiting_seconds
from generator.mutation.seeds import Seeded, seeded
from generator.mutation.seeds_result import LOW
from generator.mutation.tolerances.measure import measure
from generator.mutation.workload_maxima import workload_maxima
from generator.ops.chi_squared import SIGNIFICANCE
from generator.problems import Problem
from generator.rules.load import load_definitions, load_file
from generator.running.free_memory import available_bytes

Arguments = Mapping[str, Any]
# seconds for the random cases of one mutant
_CHECKING = 300.0


def audit(task: Arguments, link: Link) -> dict[str, Any]:
    """Return the results of a definition's mutants, and what they ran on.

    Prepares once: the forks that run mutants are those of this process. Where the
    reference fails, and was not proven in slow workloads, it prepares again with that.
    """
    keep_freed_memory()
    recordings = Path(task["root"]) / RECORDINGS
    dataset, file = Path(task["root"]), DatasetFile(**task["file"])
    limits = workload_maxima(dataset, file) if task["limits"] else None
    definition, tolerance = _definition(task), task["tolerance"]
    asked = definition, recordings, tolerance, dataset, limits, task["sharing"]
    job = prepare(*asked, postpones=True)
    if job.runner.postponed:
        with suppress(CannotRun):
            return _audited(job, task["lanes"], link)
        # with its inputs and answers, which else count as what this process has now
        del job
        gc.collect()
        job = prepare(*asked)
    return _audited(job, task["lanes"], link)


def _audited(job: AuditJob, lanes: int, link: Link) -> dict[str, Any]:
    """Return the results of a job. Raises CannotRun where its reference fails."""
    why = job.runner.objection
    if why is not None:
        raise CannotRun(why)
    give_back_freed_memory()
    within = _CHECKING + waiting_seconds(job)
    link.at(within=within)
    mutants = {}
    for place, result in run_all(job, lanes):
        mutants[place] = asdict(result)
        link.at(within=within)
    return {
        "mutants": [mutants[place] for place in sorted(mutants)],
        "reduced": dict(job.axes),
        "left_out": [*map(str, job.runner.left_out)],
        "not_asked": job.runner.not_asked,
        "recorded_cases": sum(
            prepared.is_recorded for prepared in job.runner.prepared_cases
        ),
    }


def run_seeds(task: Arguments, link: Link) -> dict[str, Any]:
    """Return the alarms of a definition's tests with all seeds, and counts of tests.

    Shortens the axes, or runs on the declared ones if `run()` raises on shorter axes;
    says each alarm, and None where the axes change.
    """
    file = DatasetFile(**task["file"])
    folder = load_definitions(Path(task["root"]), op_types=[file.op_type])
    definition = next((d for d in folder.definitions if d.path == file.path), None)
    if definition is None:
        raise _unreadable([p for p in folder.problems if p.file == file.path])
    first, last = task["seeds"]
    seeds = range(first, last + 1)
    for whole in (task["whole"], True):
        tests, axes = seeded(definition, folder.definitions, whole=whole)
        tests.share = 1.0 / task["sharing"]
        limit_memory(tests.most_bytes + MORE_BYTES)
        alarms, raises = _alarms(tests, seeds, link)
        if not (axes and raises):
            break
        link.say(None)
    if not alarms and (why := tests.nothing_compared) is not None:
        raise CannotRun(f"nothing was compared: {why}")
    return {
        "seeds": [first, last],
        "alarms": alarms,
        "tests": dict(tests.tests),
        "skipped": dict(tests.skipped),
        "statistical": len(tests.p_values),
        "low": sum(value <= LOW for value in tests.p_values),
        "significance": SIGNIFICANCE,
        "reduced": axes,
    }


def _alarms(
    tests: Seeded, seeds: range, link: Link
) -> tuple[list[dict[str, Any]], bool]:
    """Return the alarms, and whether `run()` raised in one."""

    def at(case: str, seed: int) -> None:
        link.at(f"in case {case} with seed {seed}")

    alarms = []
    for alarm in tests.alarms(seeds, at):
        alarms.append(asdict(alarm))
        link.say(alarms[-1])
    return alarms, any(alarm["raised"] for alarm in alarms)


def measure_tolerances(task: Arguments, link: Link) -> dict[str, Any]:
    """Return the floors of a definition. Raises what its reference raises."""
    free = available_bytes(torch.device("cpu"))
    if free is not None:
        limit_memory(free)
    floors = measure(
        _definition(task),
        task["file"]["path"],
        Path(task["root"]) / RECORDINGS,
        tolerance=task["tolerance"],
        sharing=task["sharing"],
    )
    return floors.as_dict()


def _definition(task: Arguments) -> LoadedDefinition:
    file = DatasetFile(**task["file"])
    definition, problems = load_file(Path(task["root"]), file)
    if definition is None:
        raise _unreadable(problems)
    return definition


def _unreadable(problems: Sequence[Problem]) -> CannotRun:
    return CannotRun(str(problems[0]) if problems else "it can't be read")
