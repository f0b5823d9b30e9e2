"""The worker pool's task of an audit: run the mutants of each definition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.dataset.paths import RECORDINGS, DatasetFile
from generator.execution.task import Event
from generator.execution.task_cache import key_of_files
from generator.mutation.forged import FORGED
from generator.ops.registry import other_files
from generator.results.audit_result import DefinitionResult, MutantResult


@dataclass(frozen=True)
class AuditTask:
    """Run the mutants of a dataset's definitions.

    `tolerance` replaces every atol and rtol.
    """

    dataset: Path
    tolerance: float | None = None
    kind = DefinitionResult
    work = "generator.mutation.audit_child"
    # seconds to make the inputs, or the random cases for one mutant
    timeout = 300.0

    def key(self, file: DatasetFile) -> str:
        """Return the digest of everything the result depends on. Raises OSError."""
        name = f"{file.op_type}/{file.name}.safetensors"
        recording = self.dataset / RECORDINGS / name
        recorded = [recording] if recording.exists() else []
        files = [self.dataset / file.path, *recorded, *other_files()]
        return key_of_files(files, repr(self.tolerance))

    def task(self, file: DatasetFile) -> dict[str, Any]:
        """Return the arguments of the child, beside the file and the dataset's root."""
        return {
            "recordings": str((self.dataset / RECORDINGS).resolve()),
            "tolerance": self.tolerance,
        }

    def read(
        self, file: DatasetFile, key: str, events: Iterator[Event]
    ) -> DefinitionResult:
        """Return the result of all mutants. Raises ValueError if some are missing."""
        mutants: dict[int, MutantResult] = {}
        ready: Event = {}
        for event in events:
            if event["event"] == "ready":
                ready = event
            elif event["event"] == "mutant":
                mutants[event["place"]] = MutantResult(**event["result"])
            elif event["event"] == "broken":
                return self.broken(file, key, event["why"])
        if len(mutants) != ready["mutants"]:
            raise ValueError(FORGED)
        return DefinitionResult(
            file.name,
            file.op_type,
            key,
            tuple(mutants[place] for place in sorted(mutants)),
            ready["reduced"],
            tuple(ready["left_out"]),
            ready["recorded_cases"],
            event["seconds"],
        )

    def broken(self, file: DatasetFile, key: str, why: str) -> DefinitionResult:
        """Return the result of a definition whose audit failed."""
        return DefinitionResult(file.name, file.op_type, key, error=why)
