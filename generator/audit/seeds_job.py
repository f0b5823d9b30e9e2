"""All seeds of one definition: the work of a child process of the worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from generator.audit.seeds import Seeded, seeded
from generator.audit.seeds_result import LOW
from generator.inquiry.child import Link
from generator.inquiry.inquiry import CannotAsk
from generator.inquiry.limits import MORE_BYTES, limit_memory
from generator.load import load_definitions
from generator.support.distribution import SIGNIFICANCE


def answer(task: Mapping[str, Any], link: Link) -> None:
    """Tell what the tests say of a reference, on its own axes if not on shorter ones.

    Raises what the dataset's own code raises where it is loaded.
    """
    file = task["file"]
    found = load_definitions(Path(task["root"]), op_types=[file["op_type"]])
    own = [d for d in found.definitions if d.path == file["path"]]
    if not own:
        problems = [str(p) for p in found.problems if p.file == file["path"]]
        raise CannotAsk(problems[0] if problems else "it can't be read")
    seeds = range(task["seeds"]["first"], task["seeds"]["last"] + 1)
    for whole in (task["whole"], True):
        asked, axes = seeded(own[0], found.definitions, whole=whole)
        asked.share = task["share"]
        limit_memory(asked.most_bytes + MORE_BYTES)
        raises = _tell(asked, seeds, link)
        if not (axes and raises):
            break
        # it does not take other lengths: on those that it declares
        link.send({"event": "anew"})
    link.send(
        {
            "event": "asked",
            "tests": dict(asked.tests),
            "skipped": dict(asked.skipped),
            "statistical": len(asked.p_values),
            "low": sum(value <= LOW for value in asked.p_values),
            "significance": SIGNIFICANCE,
            "reduced": axes,
        }
    )


def _tell(asked: Seeded, seeds: range, link: Link) -> bool:
    """Tell where it is and what is red; return whether `run()` raises somewhere."""

    def at(case: str, seed: int) -> None:
        link.send({"event": "at", "case": case, "seed": seed})

    raises = False
    for alarm in asked.alarms(seeds, at):
        link.send({"event": "alarm", "alarm": asdict(alarm)})
        raises = raises or alarm.why.startswith("raised ")
    return raises
