"""The inquiry into false alarms: which tests are red on references as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from generator.audit.seeds_result import Alarm, SeedsResult
from generator.discover import DatasetFile
from generator.inquiry.inquiry import Event
from generator.inquiry.kept import key_of_files


@dataclass(frozen=True)
class FalseAlarms:
    """Ask what the tests say of a dataset's references with seeds from first to last.

    `whole` shortens no axis; `jobs` processes share the memory.
    """

    dataset: Path
    first: int
    last: int
    whole: bool = False
    jobs: int = 1
    kind = SeedsResult
    work = "generator.audit.seeds_job"
    # one case with one seed
    patience = 300.0

    def key(self, file: DatasetFile) -> str:
        """Return the digest of all that the answer depends on. Raises OSError.

        Relations hold a reference against others of its folder.
        """
        folder = (self.dataset / file.path).parent
        others = sorted(path for path in folder.glob("*.json") if path.is_file())
        what = f"seeds {self.first} {self.last} {self.whole} {file.name}"
        return key_of_files([self.dataset / file.path, *others], what)

    def task(self, file: DatasetFile) -> dict[str, Any]:
        """Return what the worker is told, beside the file and the dataset's root."""
        return {
            "seeds": {"first": self.first, "last": self.last},
            "whole": self.whole,
            "share": 1.0 / self.jobs,
        }

    def read(self, file: DatasetFile, key: str, events: Iterator[Event]) -> SeedsResult:
        """Return what the tests said. Raises ValueError where it is not all there."""
        alarms: list[Alarm] = []
        asked: Event = {}
        where = ""
        for event in events:
            if event["event"] == "at":
                where = f" in case {event['case']} with seed {event['seed']}"
            elif event["event"] == "alarm":
                alarms.append(Alarm(**event["alarm"]))
            elif event["event"] == "anew":
                alarms.clear()
            elif event["event"] == "asked":
                asked = event
            elif event["event"] == "broken":
                broken = self.broken(file, key, event["why"] + where)
                return replace(broken, alarms=tuple(alarms))
        if not asked:
            raise ValueError(f"something else said that it was done{where}")
        return SeedsResult(
            file.name,
            file.op_type,
            key,
            (self.first, self.last),
            asked["tests"],
            asked["skipped"],
            tuple(alarms),
            asked["statistical"],
            asked["low"],
            asked["significance"],
            asked["reduced"],
            event["seconds"],
        )

    def broken(self, file: DatasetFile, key: str, why: str) -> SeedsResult:
        """Return that a definition could not be asked to the end."""
        seeds = (self.first, self.last)
        return SeedsResult(file.name, file.op_type, key, seeds, error=why)
