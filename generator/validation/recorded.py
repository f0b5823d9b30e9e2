"""Compare definitions with the audit that a dataset keeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from generator.dataset.file_reading import is_absent
from generator.dataset.paths import AUDIT
from generator.problems import Problem
from generator.problems.messages import plural
from generator.rules.cross import Summary
from generator.rules.runtime_rules import (
    AUDIT_FILE,
    AUDIT_MISSING,
    AUDIT_STALE,
    AUDIT_SURVIVORS,
)

if TYPE_CHECKING:
    from generator.results.audits import Audited

_NAMED = 3
"""Survivors that a message names."""


class Audits:
    """The recorded audits of one dataset; finds nothing where it has none.

    `problems` are those of an audit file that can't be used.
    """

    def __init__(self, root: Path) -> None:
        self._known: dict[str, Audited] | None = None
        self.problems: list[Problem] = []
        if is_absent(root, AUDIT):
            return
        # imported here: most datasets have no audit, and importing takes time
        from generator.results.audits import BrokenAudit, read_audits

        try:
            self._known = read_audits(root)
        except BrokenAudit as error:
            problem = AUDIT_FILE.problem(AUDIT, error.message, pointer=error.pointer)
            self.problems.append(problem)

    def check(self, summary: Summary) -> Iterator[Problem]:
        """Yield the Problems that a definition's audit shows."""
        if self._known is None:
            return
        audited = self._known.get(summary.name)
        if audited is None:
            yield AUDIT_MISSING.at("No audit of it is recorded.")
        elif audited.sha256 != summary.basis:
            message = f"The audit of {audited.date} is of another text of it."
            yield AUDIT_STALE.at(message)
        elif audited.survived:
            message = (
                f"{plural(audited.survived, 'planted defect')} of {audited.defects} "
            )
            yield AUDIT_SURVIVORS.at(f"{message}survived: {audited.named(_NAMED)}.")
