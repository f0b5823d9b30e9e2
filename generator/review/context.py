"""Inputs of the checklist's points."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from generator.dataset.artifacts import Key
from generator.dataset.blobs import (
    WORKLOAD_BLOB_LFS,
    WORKLOAD_BLOB_MISSING,
    WORKLOAD_PATH,
)
from generator.dataset.changes import owner_of
from generator.dataset.file_reading import read_text_file
from generator.dataset.paths import rendered_folder
from generator.problems import Problem, Severity
from generator.results.audits import Audited
from generator.results.evidence import Run
from generator.review.settings import ReviewSettings
from generator.review.sources import BaseAndHead
from generator.rules.catalogue import group_of

_MAX_TEST_BYTES = 16 << 20
_HASH = re.compile(r'^    sha256 = "([0-9a-f]{64})"$', re.MULTILINE)
_OF_BLOBS = {
    WORKLOAD_BLOB_MISSING.id: "blobs",
    WORKLOAD_PATH.id: "blobs",
    WORKLOAD_BLOB_LFS.id: "pointers",
}


@dataclass(frozen=True)
class ReviewContext:
    """The inputs of the points of the checklist.

    `root` is head's folder, `problems` are new ones; `before` and `after` are the runs
    that base and head have in verification/, the audits what they have in audit.json.
    `rendered` are tests of head that this review rendered anew, to the same bytes, and
    `stale` those that were left with what definitions said before.
    `unproven_allowed` are definitions with which nothing need be compared.
    """

    root: Path
    sides: BaseAndHead
    problems: Sequence[Problem]
    before: Sequence[Run]
    after: Sequence[Run]
    trust_evidence: bool = False
    audits_before: Mapping[str, Audited] | None = None
    audits_after: Mapping[str, Audited] | None = None
    settings: ReviewSettings = field(default_factory=ReviewSettings)
    rendered: Collection[str] = ()
    stale: Collection[str] = ()
    unproven_allowed: Collection[str] = ()

    def counts(self, run: Run, name: str) -> bool:
        """Return whether what a run says of a definition is not the author's word alone.

        That is: base has it, too. Several runs may be about one text, and several of one
        day and machine: the same is said where the day, the machine and the whole entry
        are the same.
        """
        entry = run.definitions.get(name)
        return self.trust_evidence or any(
            old.date == run.date
            and old.machine == run.machine
            and old.definitions.get(name) == entry
            for old in self.before
        )

    def hashes_of(self, path: str) -> frozenset[str] | None:
        """Return the definitions' texts that a rendered test names; None if unreadable.

        They are looked for in its text: to parse the tests of a hundred definitions
        takes as much memory as the rest of a review.
        """
        if path not in self._hashes:
            content = read_text_file(self.root, path, _MAX_TEST_BYTES)
            if isinstance(content, Problem):
                self._hashes[path] = None
            else:
                hashes = _HASH.findall(content.decode("utf-8", "replace"))
                self._hashes[path] = frozenset(hashes)
        return self._hashes[path]

    @cached_property
    def _hashes(self) -> dict[str, frozenset[str] | None]:
        return {}

    @cached_property
    def tests_folder(self) -> str:
        """Return the folder of head's rendered tests: its paths are looked through once."""
        return rendered_folder(self.sides.head)

    @cached_property
    def folders_before(self) -> frozenset[str]:
        """Return all folders of base."""
        return frozenset(
            path[: slash.start()]
            for path in self.sides.base
            for slash in re.finditer("/", path)
        )

    @cached_property
    def objections(self) -> Mapping[tuple[Key, str], Sequence[Problem]]:
        """Return the new Problems of definitions by subject; notes are left out."""
        objections = defaultdict(list)
        for problem in self.problems:
            owner = owner_of(problem.file)
            if owner is not None and problem.severity is not Severity.NOTE:
                for subject in _subjects(problem):
                    objections[owner[0], subject].append(problem)
        return objections


def _subjects(problem: Problem) -> set[str]:
    """Return what a Problem is about, by its rule."""
    group = group_of(problem.rule)
    if problem.rule.startswith("blob-"):
        return {"blobs"}
    if group in ("tags", "constants"):
        return {"tags" if problem.severity is Severity.ERROR else "lesser tags"}
    return {group, _OF_BLOBS.get(problem.rule, group)}
