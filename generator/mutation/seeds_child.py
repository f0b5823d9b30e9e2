"""Run one definition's tests with all seeds in the worker's child process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from generator.execution.child import Link
from generator.execution.limits import MORE_BYTES, limit_memory
from generator.mutation.child_definitions import task_definitions
from generator.mutation.seeds import Seeded, seeded
from generator.mutation.seeds_result import LOW
from generator.testing.chi_squared import SIGNIFICANCE


def answer(task: Mapping[str, Any], link: Link) -> None:
    """Send each alarm, then the counts of tests.

    Shortens the axes, or runs on the declared ones if `run()` raises on shorter axes.
    Raises what the definition's code raises while it is loaded.
    """
    definition, siblings = task_definitions(task)
    seeds = range(task["seeds"]["first"], task["seeds"]["last"] + 1)
    for whole in (task["whole"], True):
        tests, axes = seeded(definition, siblings, whole=whole)
        tests.share = task["share"]
        limit_memory(tests.most_bytes + MORE_BYTES)
        raises = _send_alarms(tests, seeds, link)
        if not (axes and raises):
            break
        link.send({"event": "restart"})
    link.send(
        {
            "event": "counts",
            "tests": dict(tests.tests),
            "skipped": dict(tests.skipped),
            "statistical": len(tests.p_values),
            "low": sum(value <= LOW for value in tests.p_values),
            "significance": SIGNIFICANCE,
            "reduced": axes,
        }
    )


def _send_alarms(tests: Seeded, seeds: range, link: Link) -> bool:
    """Send the current case and seed, and each alarm; return whether `run()` raised."""

    def at(case: str, seed: int) -> None:
        link.send({"event": "at", "case": case, "seed": seed})

    raises = False
    for alarm in tests.alarms(seeds, at):
        link.send({"event": "alarm", "alarm": asdict(alarm)})
        raises = raises or alarm.raised
    return raises
