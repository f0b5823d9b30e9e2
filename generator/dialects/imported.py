"""Results of an import: definitions with the changes made, and refusals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class ImportRefused(Exception):
    """Raised with one sentence where something can't become a definition."""


@dataclass(frozen=True)
class Import:
    """One definition that was read, or why it was refused.

    `source` is where it was read, `value` the definition's JSON, None where `reason`
    says why there is none. `changes` lists every departure from the source. `custom` is
    the text of the file of custom inputs, empty without one; `workloads`, `solutions`
    and `traces` are JSON values that belong to the definition. The blobs that workloads
    name lie below `folder`; None is a dialect that has none.
    """

    source: str
    value: Mapping[str, Any] | None = None
    reason: str = ""
    changes: Sequence[str] = ()
    custom: str = ""
    workloads: Sequence[Mapping[str, Any]] = ()
    solutions: Sequence[Mapping[str, Any]] = ()
    traces: Sequence[Mapping[str, Any]] = ()
    folder: Path | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return what a reader of the command's JSON needs."""
        return {
            "source": self.source,
            "definition": self.value["name"] if self.value is not None else None,
            "op_type": self.value["op_type"] if self.value is not None else None,
            "reason": self.reason or None,
            "changes": list(self.changes),
        }


@dataclass
class Changes:
    """The sentences that say what an import changed."""

    lines: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        """Add one sentence, once."""
        if line not in self.lines:
            self.lines.append(line)
