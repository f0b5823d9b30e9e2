"""Defects that other checkers miss: `verification/checkers.json`, a line a definition.

A definition is known by the hash of what a run of it depends on: a result for another
text of it is stale.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from generator.dataset.atomic_write import write_below
from generator.dataset.file_reading import is_absent, is_file, read_text
from generator.dataset.lock import locked
from generator.dataset.paths import CHECKERS_KEPT, DatasetFile
from generator.evaluation.checkers.posed_rounds import PosedRounds
from generator.execution.definition_task import DefinitionTask
from generator.execution.outcome import Outcome
from generator.problems import Failure
from generator.rules.basis import basis_in

_WORK = "generator.evaluation.checkers.task:check"
_SECONDS = 900.0
_STALE = "its text is another by now: run trace-dataset audit --checker … --record"
_FIX = "Take the file from git, or delete it and run trace-dataset audit --checker … --record."


@dataclass(frozen=True)
class CheckedDefects:
    """A definition's defects, and of each checker which of them pass.

    `reduced` are axes that were shorter than declared. `error` says why nothing was
    asked.
    """

    definition: str
    op_type: str
    path: str
    defects: Sequence[str] = ()
    checkers: Mapping[str, PosedRounds] = field(default_factory=dict)
    reduced: Mapping[str, int] = field(default_factory=dict)
    key: str = ""
    seconds: float = 0.0
    error: str = ""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> CheckedDefects:
        """Return the result of JSON values. Raises KeyError, TypeError."""
        checkers = {
            name: PosedRounds(**rounds) for name, rounds in value["checkers"].items()
        }
        return cls(**{**value, "checkers": checkers})


def checkers_task(
    dataset: Path, checkers: Sequence[str]
) -> DefinitionTask[CheckedDefects]:
    """Return the task that asks checkers, by name or command, about definitions."""

    def failed(file: DatasetFile, outcome: Outcome) -> CheckedDefects:
        return CheckedDefects(file.name, file.op_type, file.path, error=outcome.why)

    arguments = {"checkers": list(checkers)}
    parts = ("definitions", "workloads", "blob/workloads")
    read = CheckedDefects.from_dict
    return DefinitionTask(
        _WORK, _SECONDS, dataset, arguments, None, read, failed, parts
    )


def kept(dataset: Path) -> dict[str, Any]:
    """Return definition → what is kept of it. Raises Failure where the file is broken."""
    if is_absent(dataset, CHECKERS_KEPT):
        return {}
    try:
        read: dict[str, Any] = json.loads(read_text(dataset, CHECKERS_KEPT))[
            "definitions"
        ]
        for value in read.values():
            results([value])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise Failure(f"{CHECKERS_KEPT} is no record of checkers. {_FIX}") from None
    return read


def known(dataset: Path) -> list[CheckedDefects]:
    """Return what is kept; of a definition that is another by now only that it is."""
    values = kept(dataset)
    return [
        one
        if _basis(dataset, one.path) == values[one.definition]["sha256"]
        else CheckedDefects(one.definition, one.op_type, one.path, error=_STALE)
        for one in results(list(values.values()))
    ]


def _basis(dataset: Path, path: str) -> str:
    return basis_in(dataset, path) if is_file(dataset, path) else ""


def results(values: Sequence[Mapping[str, Any]]) -> list[CheckedDefects]:
    """Return what is kept as results. Raises KeyError, TypeError."""
    names = ("definition", "op_type", "path", "defects", "checkers", "reduced")
    return [
        CheckedDefects.from_dict({name: value[name] for name in names})
        for value in values
    ]


def record(dataset: Path, checked: Sequence[CheckedDefects]) -> None:
    """Add results to the dataset's record; checkers that were not asked stay."""
    with locked(dataset):
        values = kept(dataset)
        for one in checked:
            if one.error:
                continue
            sha256 = _basis(dataset, one.path)
            before = values.get(one.definition, {})
            same = before.get("sha256") == sha256
            same = same and before["defects"] == list(one.defects)
            asked = {name: asdict(judged) for name, judged in one.checkers.items()}
            values[one.definition] = {
                "definition": one.definition,
                "op_type": one.op_type,
                "path": one.path,
                "sha256": sha256,
                "defects": list(one.defects),
                "reduced": dict(one.reduced),
                "checkers": {**(before["checkers"] if same else {}), **asked},
            }
        lines = ",\n".join(
            f"  {json.dumps(name)}: {json.dumps(value)}"
            for name, value in sorted(values.items())
        )
        text = f'{{"format": 1, "definitions": {{\n{lines}\n}}}}\n'
        write_below(dataset, CHECKERS_KEPT, text.encode("ascii"))
