"""Review each pull request of the audit in memory, and compare with what must come out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from generator.problems.messages import one_line, plural
from generator.reports.report import (
    Conclusion,
    Report,
    Row,
    Section,
    Status,
    Table,
)
from generator.review.audit.pull_request import NotApplicable, PullRequest
from generator.review.audit.subject import AuditedDataset, Files
from generator.review.decision import Decision
from generator.review.moved_on import moved_on
from generator.review.review import Review, make_review
from generator.review.sources import BaseAndHead, Revisions, write_sides
from generator.review.tree import Tree, TreeEntry, refused

_REVISIONS = Revisions("base", "head", "of the audit")


@dataclass(frozen=True)
class Tried:
    """A review's decision on one pull request.

    `points` are those that spoke against it, `wrong` is empty where it is as it must be.
    """

    name: str
    refused_by: str
    decision: Decision
    points: tuple[str, ...]
    wrong: str = ""


def review_of(one: PullRequest, subject: AuditedDataset) -> Review:
    """Return the review of a pull request on the subject."""
    base, head, branch = one.sides(subject)
    contents: dict[str, bytes] = {}
    old = _tree(base, {}, contents)
    new = _tree(head, one.modes, contents)
    odd = tuple(sorted({*refused(old), *refused(new)}))

    def blobs(oids: Sequence[str]) -> Iterator[bytes]:
        return (contents[oid] for oid in oids)

    sides = BaseAndHead(old, new, odd, one.outside)
    if one.since is not None:
        moved = moved_on(sides, _tree(branch, {}, contents), blobs)
        sides = replace(sides, moved=moved)
    with TemporaryDirectory(prefix="trace-dataset-audit-") as name:
        sources = write_sides(_REVISIONS, sides, blobs, Path(name))
        return make_review(sources, 1, one.asked_of(subject))


def _tree(files: Files, modes: object, contents: dict[str, bytes]) -> Tree:
    tree: Tree = {}
    known = modes if isinstance(modes, dict) else {}
    for path, data in files.items():
        head = b"blob %d\0" % len(data)
        oid = hashlib.sha1(head + data, usedforsecurity=False).hexdigest()
        contents[oid] = data
        tree[path] = TreeEntry(known.get(path, "100644"), oid)
    return tree


def tried(one: PullRequest, subject: AuditedDataset) -> Tried:
    """Return whether a review refuses a bad one by its point, or approves a good one."""
    review = review_of(one, subject)
    points = tuple(dict.fromkeys(reason.point for reason in review.grounds))
    tried = Tried(one.name, one.refused_by, review.decision, points)
    wrong = ""
    if one.refused_by:
        if review.decision is Decision.APPROVE:
            wrong = "approved"
        elif one.refused_by not in points:
            wrong = f"refused by {', '.join(points)}, not by {one.refused_by}"
    elif review.decision is not Decision.APPROVE:
        wrong = f"{review.decision.value}: {'; '.join(review.reasons)}"
    return Tried(one.name, one.refused_by, tried.decision, points, one_line(wrong, 300))


def audit_reviews(
    bad: Iterable[PullRequest], good: Iterable[PullRequest], subject: AuditedDataset
) -> Iterator[Tried]:
    """Yield what a review made of each pull request that the dataset has room for."""
    for one in (*bad, *good):
        with suppress(NotApplicable):
            yield tried(one, subject)


def audit_report(tried: Sequence[Tried], subject: AuditedDataset) -> Report:
    """Return the report: what was not as it must be first."""
    wrong = [one for one in tried if one.wrong]
    bad = [one for one in tried if one.refused_by]
    good = len(tried) - len(bad)
    refused_ones = sum(not one.wrong for one in bad)
    approved = sum(not one.wrong for one in tried if not one.refused_by)
    summary = (
        f"{refused_ones} of {plural(len(bad), 'bad pull request')} refused by the right "
        f"point, {approved} of {good} good ones approved"
    )
    status = Status.FAILED if wrong else Status.PASSED
    rows = [
        Row(
            (
                one.name,
                one.refused_by or "nothing",
                one.decision.value,
                one.wrong or ", ".join(one.points),
            ),
            Status.FAILED if one.wrong else Status.PASSED,
        )
        for one in sorted(tried, key=lambda one: not one.wrong)
    ]
    columns = ("pull request", "to be refused by", "verdict", "points")
    return Report(
        title="Audit of reviews",
        command="trace-dataset audit --review",
        conclusion=Conclusion(status, summary),
        payload={
            "definitions": [subject.first, subject.second, subject.third],
            "pull_requests": tried,
        },
        sections=(Section("", [Table(rows, columns, words=columns)]),),
    )
