"""What the checklist is answered from: both sides, their problems and their evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from generator.dataset.artifacts import Key
from generator.dataset.changes import owner_of
from generator.problems import Problem
from generator.results.audits import Audited
from generator.results.evidence import Run
from generator.review.snapshots import Sides


@dataclass(frozen=True)
class ReviewContext:
    """Hold what the points are answered from.

    `root` is head's folder, `problems` are new ones; `before` and `after` are the runs
    that base and head have in verification/, the audits what they have in audit.json.
    """

    root: Path
    sides: Sides
    problems: Sequence[Problem]
    before: Sequence[Run]
    after: Sequence[Run]
    trust_evidence: bool = False
    audits_before: Mapping[str, Audited] | None = None
    audits_after: Mapping[str, Audited] | None = None

    def had(self, run: Run, name: str) -> bool:
        """Return whether base has what a run says of a definition, too.

        Several runs may be about one text, and several of one day and machine: the same
        is said where the day, the machine and the whole entry are the same.
        """
        entry = run.definitions.get(name)
        return any(
            old.date == run.date
            and old.machine == run.machine
            and old.definitions.get(name) == entry
            for old in self.before
        )

    def owned(self, key: Key, kind: str) -> list[str]:
        """Return head's files of a kind that belong to a definition, by their paths."""
        return self._owned.get((key, kind), [])

    @cached_property
    def folders_before(self) -> frozenset[str]:
        """Return the folders that base has, the first one or two parts of its paths."""
        parts = [path.split("/") for path in self.sides.base]
        firsts = {p[0] for p in parts if len(p) > 1}
        return frozenset(firsts | {"/".join(p[:2]) for p in parts if len(p) > 2})

    @cached_property
    def _owned(self) -> dict[tuple[Key, str], list[str]]:
        found: dict[tuple[Key, str], list[str]] = {}
        for path in sorted(self.sides.head):
            owner = owner_of(path)
            if owner is not None:
                found.setdefault(owner, []).append(path)
        return found
