"""The audit's result of each definition, as the table of verification shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from generator.dataset.paths import DatasetFile
from generator.results.audited import Audited

KNOWN, STALE, ABSENT = "known", "stale", "absent"


@dataclass(frozen=True)
class AuditLine:
    """Hold one definition's audit: `state` says whether it is known, stale or absent.

    A stale one is of another text of the definition; an absent one is None.
    """

    op_type: str
    definition: str
    state: str
    audited: Audited | None

    @property
    def current(self) -> Audited | None:
        """Return the audit if it is of the definition as it is."""
        return self.audited if self.state == KNOWN else None

    def as_dict(self) -> dict[str, Any]:
        """Return the line as plain JSON values."""
        own = {
            "op_type": self.op_type,
            "definition": self.definition,
            "state": self.state,
        }
        if self.audited is None:
            return own
        return {**own, "defects": self.audited.defects, **self.audited.as_dict()}


def audit_line(file: DatasetFile, sha256: str, found: Audited | None) -> AuditLine:
    """Return the line of a definition whose file has this hash."""
    state = ABSENT
    if found is not None:
        state = KNOWN if found.sha256 == sha256 else STALE
    return AuditLine(file.op_type, file.name, state, found)
