"""The recorded audit of a definition: it is there, up to date, and has no survivors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from generator.problems import Problem
from generator.problems.messages import plural
from generator.problems.rule import note, warning

_AGAIN = "Run trace-dataset audit --record on the definition"
_NAMED = 3
"""Survivors that a message names."""

AUDIT_FILE = warning(
    "audit-file",
    "The dataset's verification/audit.json is not what an audit records.",
    "Take the file from git, or delete it and run trace-dataset audit --all --record.",
    "a merge conflict in it, or a count that is no number",
)
AUDIT_MISSING = note(
    "audit-missing",
    "Others were audited, this definition was not: its tests may catch nothing.",
    f"{_AGAIN}.",
    "a new definition beside audited ones",
)
AUDIT_STALE = warning(
    "audit-stale",
    "The recorded audit is of another text of the definition.",
    f"{_AGAIN} again.",
    "a reference that was edited after the audit",
)
AUDIT_SURVIVORS = warning(
    "audit-survivors",
    "Planted defects of the reference were caught by no test.",
    "Add a case to the op in which they show, or tighten the bound that lets them "
    "pass; trace-dataset audit --survivors lists them.",
    "`logits / 8` as `logits / 7` passes every test",
)


class RecordedAudit(Protocol):
    """The result of a definition's last audit; `sha256` is of the audited file."""

    @property
    def sha256(self) -> str: ...
    @property
    def date(self) -> str: ...
    @property
    def survived(self) -> int: ...
    @property
    def defects(self) -> int: ...
    def named(self, most: int) -> str:
        """Return the names of the survivors, at most `most` of them."""


def check(path: str, sha256: str, found: RecordedAudit | None) -> Iterator[Problem]:
    """Yield the Problems of a definition's audit; `found` is None where there is none.

    `path` and `sha256` are of the definition's file as it is now.
    """
    if found is None:
        yield AUDIT_MISSING.problem(path, "No audit of it is recorded.")
    elif found.sha256 != sha256:
        message = f"The audit of {found.date} is of another text of it."
        yield AUDIT_STALE.problem(path, message)
    elif found.survived:
        message = (
            f"{plural(found.survived, 'planted defect')} of {found.defects} "
            f"survived: {found.named(_NAMED)}."
        )
        yield AUDIT_SURVIVORS.problem(path, message)
