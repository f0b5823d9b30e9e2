"""Run all mutants of one definition in the worker's child process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from generator.execution.child import Link
from generator.execution.task import CannotRun
from generator.mutation.audit_job import prepare
from generator.mutation.child_definitions import task_definition
from generator.mutation.mutant_workers import objection, run_all, waiting_seconds


def answer(task: Mapping[str, Any], link: Link) -> None:
    """Send the result of each mutant with its place in the list of mutants.

    Prepares once: the children that run mutants are forked from this process. Raises
    what the definition's code raises while it is loaded.
    """
    definition = task_definition(task)
    job = prepare(definition, Path(task["recordings"]), task["tolerance"])
    timeout = task["timeout"] + waiting_seconds(job)
    link.send({"event": "prepared", "longest": timeout})
    why = objection(job)
    if why is not None:
        raise CannotRun(why)
    left_out = [
        f"{catch.test} in case {catch.case}: {catch.why}"
        for catch in job.bench.left_out
    ]
    link.send(
        {
            "event": "ready",
            "mutants": len(job.planned),
            "reduced": dict(job.axes),
            "left_out": left_out,
            "recorded_cases": sum(stand.is_recorded for stand in job.bench.stands),
        }
    )
    for place, result in run_all(job, task["lanes"]):
        link.send({"event": "mutant", "place": place, "result": asdict(result)})
