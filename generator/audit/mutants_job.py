"""All mutants of one definition: the work of a child process of the worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from generator.audit.job import prepare
from generator.audit.lanes import objection, run_all, waiting_seconds
from generator.inquiry.asked import asked_definition
from generator.inquiry.child import Link
from generator.inquiry.inquiry import CannotAsk


def answer(task: Mapping[str, Any], link: Link) -> None:
    """Tell what becomes of each mutant, with its place among all.

    What was made once is there at once in every child that runs some. Raises what the
    dataset's own code raises where it is loaded.
    """
    definition = asked_definition(task)
    job = prepare(definition, Path(task["recordings"]), task["tolerance"])
    patience = task["patience"] + waiting_seconds(job)
    link.send({"event": "prepared", "longest": patience})
    why = objection(job)
    if why is not None:
        raise CannotAsk(why)
    left_out = [
        f"{test} in case {case}: {why}"
        for (test, case), why in job.bench.left_out.items()
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
