"""Read the dataset's recorded audit, and check each definition against it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from generator.dataset.paths import AUDIT
from generator.problems import Problem
from generator.rules.audits import AUDIT_FILE, check
from generator.rules.cross import Summary

if TYPE_CHECKING:
    from generator.results.audits import Audited, BrokenAudit


class Audits:
    """Check the definitions of one dataset; finds nothing where it has no audit."""

    def __init__(self, root: Path) -> None:
        self._known: dict[str, Audited] | None = None
        self._broken: BrokenAudit | None = None
        if not os.path.lexists(root / AUDIT):
            return
        # imported here: most datasets have no audit, and importing takes time
        from generator.results.audits import BrokenAudit, read_audits

        try:
            self._known = read_audits(root)
        except BrokenAudit as error:
            self._broken = error

    def of_file(self) -> Iterator[Problem]:
        """Yield the Problem of an audit file that can't be used."""
        if self._broken is not None:
            message, where = self._broken.message, self._broken.pointer
            yield AUDIT_FILE.problem(AUDIT, message, pointer=where)

    def add(self, summary: Summary) -> Iterator[Problem]:
        """Yield the Problems that a definition's audit shows."""
        if self._known is not None:
            found = self._known.get(summary.name)
            yield from check(summary.path, summary.sha256, found)
