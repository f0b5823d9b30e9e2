"""The worker pool's task of `audit --tolerances`: measure the error that each definition needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from generator.dataset.paths import DatasetFile
from generator.execution.task import Event
from generator.mutation.forged import FORGED
from generator.mutation.tolerances.result import Floors


@dataclass(frozen=True)
class ToleranceTask:
    """Measure the floors of a dataset's definitions.

    `recordings` is the folder of recordings, `tolerance` replaces every atol and rtol,
    and `jobs` processes share the memory. Results are not cached: no key is needed.
    """

    recordings: Path
    tolerance: float | None = None
    jobs: int = 1
    kind = Floors
    work = "generator.mutation.tolerances.child"
    # seconds for all cases of a definition: it sends one event, at the end
    timeout = 900.0

    def key(self, file: DatasetFile) -> str:
        """Return an empty key: results are not cached."""
        return ""

    def task(self, file: DatasetFile) -> dict[str, Any]:
        """Return the arguments of the child, beside the file and the dataset's root."""
        return {
            "recordings": str(self.recordings.resolve()),
            "tolerance": self.tolerance,
            "jobs": self.jobs,
        }

    def read(self, file: DatasetFile, key: str, events: Iterator[Event]) -> Floors:
        """Return the floors. Raises ValueError if they are missing."""
        found: Floors | None = None
        for event in events:
            if event["event"] == "floors":
                found = Floors.from_dict(event["result"])
            elif event["event"] == "broken":
                return self.broken(file, key, event["why"])
        if found is None:
            raise ValueError(FORGED)
        return replace(found, seconds=event["seconds"])

    def broken(self, file: DatasetFile, key: str, why: str) -> Floors:
        """Return the result of a definition that could not be measured."""
        return Floors(file.name, file.op_type, file.path, error=why)
