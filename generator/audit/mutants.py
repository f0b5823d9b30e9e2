"""The inquiry into mutants: what the audit asks workers, and how it reads the answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.audit.result import DefinitionResult, MutantResult
from generator.discover import RECORDINGS, DatasetFile
from generator.inquiry.inquiry import Event
from generator.inquiry.kept import key_of


@dataclass(frozen=True)
class Mutants:
    """Ask what becomes of the mutants of a dataset's definitions.

    `tolerance` replaces every atol and rtol.
    """

    dataset: Path
    tolerance: float | None = None
    kind = DefinitionResult
    work = "generator.audit.mutants_job"
    # making the inputs, or the random cases beside one mutant
    patience = 300.0

    def key(self, file: DatasetFile) -> str:
        """Return the digest of all that the answer depends on. Raises OSError."""
        recording = Path(file.op_type) / f"{file.name}.safetensors"
        return key_of(
            self.dataset / file.path,
            self.dataset / RECORDINGS / recording,
            self.tolerance,
        )

    def task(self, file: DatasetFile) -> dict[str, Any]:
        """Return what the worker is told, beside the file and the dataset's root."""
        return {
            "recordings": str((self.dataset / RECORDINGS).resolve()),
            "tolerance": self.tolerance,
        }

    def read(
        self, file: DatasetFile, key: str, events: Iterator[Event]
    ) -> DefinitionResult:
        """Return what became of the mutants. Raises ValueError if not of all."""
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
            raise ValueError("something else said that it was done")
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
        """Return that a definition could not be audited."""
        return DefinitionResult(file.name, file.op_type, key, error=why)
