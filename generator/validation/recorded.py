"""Compare definitions with the records of a dataset: its audit, and its runs.

`verification/*.json` has runs; a run maps a definition's name to the hash of its file
and to a verdict for each source. A record of another text of the definition does not
count.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from generator.dataset.paths import AUDIT
from generator.problems import Problem
from generator.problems.messages import plural
from generator.rules.cross import Summary
from generator.rules.elsewhere import (
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
    """Check the definitions of one dataset; finds nothing where it has no audit.

    `problems` are those of an audit file that can't be used.
    """

    def __init__(self, root: Path) -> None:
        self._known: dict[str, Audited] | None = None
        self.problems: list[Problem] = []
        if not os.path.lexists(root / AUDIT):
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
        found = self._known.get(summary.name)
        if found is None:
            yield AUDIT_MISSING.at("No audit of it is recorded.")
        elif found.sha256 != summary.sha256:
            message = f"The audit of {found.date} is of another text of it."
            yield AUDIT_STALE.at(message)
        elif found.survived:
            message = f"{plural(found.survived, 'planted defect')} of {found.defects} "
            yield AUDIT_SURVIVORS.at(f"{message}survived: {found.named(_NAMED)}.")


class KernelEvidence:
    """Look up runs of one dataset; its records are read at the first call."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __call__(self, summary: Summary) -> bool:
        """Return whether a production kernel passed and none failed on this text."""
        verdicts = self._verdicts.get((summary.name, summary.sha256), set())
        return verdicts == {"PASSED"}

    @cached_property
    def _verdicts(self) -> dict[tuple[str, str], set[str]]:
        # imported here: most datasets have no status:verified
        from generator.results.evidence import SKIPPED, runs_in
        from generator.results.sources import backs_verified
        from generator.testing.source_names import is_pair

        found: dict[tuple[str, str], set[str]] = {}
        for run in runs_in(self.root):
            for name, entry in run.definitions.items():
                for source, of_source in entry.sources.items():
                    verdict = of_source.verdict
                    partial = of_source.not_given or of_source.rewritten
                    if partial and verdict == "PASSED":
                        # nobody has seen the outputs that it does not give, or what
                        # the kernel makes of the inputs as they are
                        continue
                    # kernels that agree with each other say nothing of the reference;
                    # where they don't, nobody knows which of them it should agree with
                    against = is_pair(source) and verdict != "PASSED"
                    if verdict != SKIPPED and (backs_verified(source) or against):
                        found.setdefault((name, entry.sha256), set()).add(verdict)
        return found
