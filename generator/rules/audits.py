"""What the recorded audit says of definitions: whether their tests can fail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from generator.evidence_files import AUDIT
from generator.outcome import Summary
from generator.problems import Problem
from generator.rules.table import finding
from generator.wording import plural

if TYPE_CHECKING:
    from generator.audit_file import BrokenAudit
    from generator.audited import Audited

_NAMED = 3
"""Survivors that are named."""


class Audits:
    """Answer for one dataset; where it has no audit there is nothing to say."""

    def __init__(self, root: Path) -> None:
        self._known: dict[str, Audited] | None = None
        self._broken: BrokenAudit | None = None
        if not os.path.lexists(root / AUDIT):
            return
        # most datasets have none, and each import takes its time
        from generator.audit_file import BrokenAudit, read_audits

        try:
            self._known = read_audits(root)
        except BrokenAudit as error:
            self._broken = error

    def of_file(self) -> Iterator[Problem]:
        """Yield what is wrong with the audit's file itself."""
        if self._broken is not None:
            message, where = self._broken.message, self._broken.pointer
            yield finding("audit-file", AUDIT, message, pointer=where)

    def add(self, summary: Summary) -> Iterator[Problem]:
        """Yield what the audit says of a definition."""
        if self._known is None:
            return
        found = self._known.get(summary.name)
        if found is None:
            message = "No audit of it is recorded."
            yield finding("audit-missing", summary.path, message)
        elif found.sha256 != summary.sha256:
            message = f"The audit of {found.date} is of another text of it."
            yield finding("audit-stale", summary.path, message)
        elif found.survived:
            message = (
                f"{plural(found.survived, 'planted defect')} of {found.defects} "
                f"survived: {found.named(_NAMED)}."
            )
            yield finding("audit-survivors", summary.path, message)
