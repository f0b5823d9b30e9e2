"""The worker pool's task of `audit --seeds`: run each definition's tests with seeds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from generator.dataset.paths import DatasetFile
from generator.execution.task import Event
from generator.execution.task_cache import key_of_files
from generator.mutation.forged import FORGED
from generator.mutation.seeds_result import Alarm, SeedsResult
from generator.ops.registry import other_files


@dataclass(frozen=True)
class SeedsTask:
    """Run the tests of unchanged references with the seeds `first` to `last`.

    `whole` shortens no axis; `jobs` processes share the memory.
    """

    dataset: Path
    first: int
    last: int
    whole: bool = False
    jobs: int = 1
    kind = SeedsResult
    work = "generator.mutation.seeds_child"
    # seconds for one case with one seed
    timeout = 300.0

    def key(self, file: DatasetFile) -> str:
        """Return the digest of everything the result depends on. Raises OSError.

        Relations compare a reference with others of its folder.
        """
        folder = (self.dataset / file.path).parent
        others = sorted(path for path in folder.glob("*.json") if path.is_file())
        what = f"seeds {self.first} {self.last} {self.whole} {file.name}"
        return key_of_files([self.dataset / file.path, *others, *other_files()], what)

    def task(self, file: DatasetFile) -> dict[str, Any]:
        """Return the arguments of the child, beside the file and the dataset's root."""
        return {
            "seeds": {"first": self.first, "last": self.last},
            "whole": self.whole,
            "share": 1.0 / self.jobs,
        }

    def read(self, file: DatasetFile, key: str, events: Iterator[Event]) -> SeedsResult:
        """Return the alarms and counts. Raises ValueError if the counts are missing."""
        alarms: list[Alarm] = []
        counts: Event = {}
        where = ""
        for event in events:
            if event["event"] == "at":
                where = f" in case {event['case']} with seed {event['seed']}"
            elif event["event"] == "alarm":
                alarms.append(Alarm(**event["alarm"]))
            elif event["event"] == "restart":
                alarms.clear()
            elif event["event"] == "counts":
                counts = event
            elif event["event"] == "broken":
                broken = self.broken(file, key, event["why"] + where)
                return replace(broken, alarms=tuple(alarms))
        if not counts:
            raise ValueError(f"{FORGED}{where}")
        return SeedsResult(
            file.name,
            file.op_type,
            key,
            (self.first, self.last),
            counts["tests"],
            counts["skipped"],
            tuple(alarms),
            counts["statistical"],
            counts["low"],
            counts["significance"],
            counts["reduced"],
            event["seconds"],
        )

    def broken(self, file: DatasetFile, key: str, why: str) -> SeedsResult:
        """Return the result of a definition whose tests did not run to the end."""
        seeds = (self.first, self.last)
        return SeedsResult(file.name, file.op_type, key, seeds, error=why)
