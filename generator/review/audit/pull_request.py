"""One pull request of the audit: what it changes, and what a review must make of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from generator.review.audit.subject import AuditedDataset, Files
from generator.review.review import ReviewRequest

Change = Callable[[Files, AuditedDataset], object]
"""Changes the files of a side in place."""


class NotApplicable(Exception):
    """Raised where a dataset lacks what a pull request would change."""


@dataclass(frozen=True)
class PullRequest:
    """One change and the point that has to refuse it; empty for a good one.

    `before` changes the base first, `since` the base's branch after head left it.
    `modes` are of the head's files that are no ordinary ones, `outside` are changed
    paths above the dataset's root.
    """

    name: str
    change: Change
    refused_by: str = ""
    asked: ReviewRequest = field(default_factory=ReviewRequest)
    before: Change | None = None
    since: Change | None = None
    modes: Mapping[str, str] = field(default_factory=dict)
    outside: tuple[str, ...] = ()

    def asked_of(self, subject: AuditedDataset) -> ReviewRequest:
        """Return what is asked, with the names of the subject put in."""
        names = tuple(_named(name, subject) for name in self.asked.unproven)
        return replace(self.asked, unproven=names)

    def sides(self, subject: AuditedDataset) -> tuple[Files, Files, Files]:
        """Return the files before and after, and those of the base's branch by now."""
        base = dict(subject.files)
        if self.before is not None:
            self.before(base, subject)
        head, branch = dict(base), dict(base)
        self.change(head, subject)
        if self.since is not None:
            self.since(branch, subject)
        return base, head, branch


def adding(path: str, content: bytes | str = b"# nothing\n") -> Change:
    """Return a change that adds a file, or replaces one."""
    data = content.encode() if isinstance(content, str) else content

    def change(files: Files, subject: AuditedDataset) -> None:
        files[_named(path, subject)] = data

    return change


def removing(path: str) -> Change:
    """Return a change that removes files: one, or all of a folder ending in a slash."""

    def change(files: Files, subject: AuditedDataset) -> None:
        wanted = _named(path, subject)
        gone = [
            p
            for p in files
            if p == wanted or (wanted[-1] == "/" and p.startswith(wanted))
        ]
        if not gone:
            raise NotApplicable(f"there is no {wanted}")
        for one in gone:
            del files[one]

    return change


def replacing(path: str, old: str, new: str) -> Change:
    """Return a change of every occurrence of a text in a file, which must be there."""

    def change(files: Files, subject: AuditedDataset) -> None:
        at = _named(path, subject)
        before = files[at].decode()
        text = before.replace(_named(old, subject), _named(new, subject))
        if text == before:
            raise NotApplicable(f"{at} has no {old!r}")
        files[at] = text.encode()

    return change


def editing(path: str, edit: Callable[[Any], Any]) -> Change:
    """Return a change of a JSON value; `edit` changes it in place or returns another."""

    def change(files: Files, subject: AuditedDataset) -> None:
        at = _named(path, subject)
        value = json.loads(files[at])
        edited = edit(value)
        files[at] = json.dumps(value if edited is None else edited, indent=2).encode()

    return change


def moving(old: str, new: str) -> Change:
    """Return a change that moves a file."""

    def change(files: Files, subject: AuditedDataset) -> None:
        files[_named(new, subject)] = files.pop(_named(old, subject))

    return change


def together(*changes: Change) -> Change:
    """Return several changes as one."""

    def change(files: Files, subject: AuditedDataset) -> None:
        for one in changes:
            one(files, subject)

    return change


def _named(path: str, subject: AuditedDataset) -> str:
    """Return a path with the names of the subject put in."""
    for key, value in (
        ("{op}", subject.op_type),
        ("{1}", subject.first),
        ("{2}", subject.second),
        ("{3}", subject.third),
        ("{test}", subject.test),
        ("{solution}", subject.solution),
        ("{traces}", subject.traces),
    ):
        path = path.replace(key, value)
    return path
