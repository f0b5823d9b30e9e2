"""The inquiry into floors: how far a right answer may be off, in each definition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from generator.discover import DatasetFile
from generator.inquiry.inquiry import Event
from generator.precision.result import Floors


@dataclass(frozen=True)
class Precision:
    """Ask for the floors of a dataset's definitions.

    `recordings` is the folder of what kernels returned, `tolerance` replaces every atol
    and rtol, and `jobs` processes share the memory. Nothing is kept: no key is needed.
    """

    recordings: Path
    tolerance: float | None = None
    jobs: int = 1
    kind = Floors
    work = "generator.precision.job"
    # all cases of a definition, of which nothing is told before the end
    patience = 900.0

    def key(self, file: DatasetFile) -> str:
        """Return none: nothing is kept."""
        return ""

    def task(self, file: DatasetFile) -> dict[str, Any]:
        """Return what the worker is told, beside the file and the dataset's root."""
        return {
            "recordings": str(self.recordings.resolve()),
            "tolerance": self.tolerance,
            "jobs": self.jobs,
        }

    def read(self, file: DatasetFile, key: str, events: Iterator[Event]) -> Floors:
        """Return what was measured. Raises ValueError where that was not told."""
        found: Floors | None = None
        for event in events:
            if event["event"] == "floors":
                found = Floors.from_dict(event["result"])
            elif event["event"] == "broken":
                return self.broken(file, key, event["why"])
        if found is None:
            raise ValueError("something else said that it was done")
        return replace(found, seconds=event["seconds"])

    def broken(self, file: DatasetFile, key: str, why: str) -> Floors:
        """Return that a definition could not be measured."""
        return Floors(file.name, file.op_type, file.path, error=why)
