"""Bad pull requests that are honest of the base that they left, and not of its branch."""

from __future__ import annotations

from collections.abc import Iterator

from generator.review.audit.bad_claims import described
from generator.review.audit.changes import (
    FIRST,
    add_third,
    asking_for,
    more,
    reference,
    render,
    runs,
    workloads,
)
from generator.review.audit.pull_request import (
    PullRequest,
    adding,
    editing,
    removing,
    together,
)
from generator.review.audit.subject import AuditedDataset, Files, evidence
from generator.review.findings import BEHIND
from generator.rules.accepted import ACCEPTED

_OF_THIRD = "verification/2026-01-02_audit.json"


def of_branches() -> Iterator[PullRequest]:
    """Yield changes of a base whose branch has gone on, in what decides about them."""
    for what, since in {
        "evidence was withdrawn": removing(_OF_THIRD),
        "a failure is on record": _failed_since,
        "a definition of the name is there": _other_third,
    }.items():
        yield PullRequest(
            f"behind: {what} since, of a new definition",
            together(add_third, render),
            BEHIND.id,
            before=evidence_first,
            since=since,
        )
    for what, since in {
        "more is asked for": asking_for("recording"),
        "an error is accepted": adding(ACCEPTED, ""),
        "the reference is another": reference("return ", "return 1.0 * "),
        "the description is another": editing(
            FIRST, lambda value: value.update(description="In yet other words.")
        ),
        "there are workloads more": workloads(more(1)),
        "there is another result": runs(
            lambda entries, subject: entries.pop(subject.first)
        ),
    }.items():
        yield PullRequest(
            f"behind: {what} since, of one that is described anew",
            together(described, render),
            BEHIND.id,
            since=since,
        )


def evidence_first(files: Files, subject: AuditedDataset) -> None:
    """Add evidence on the third definition, which is not there yet."""
    with_third = {**files, **subject.third_files}
    files[_OF_THIRD] = evidence(with_third, subject, subject.third)


def _failed_since(files: Files, subject: AuditedDataset) -> None:
    path = "verification/2026-01-03_audit.json"
    with_third = {**files, **subject.third_files}
    files[path] = evidence(with_third, subject, subject.third).replace(
        b"PASSED", b"FAILED"
    )


def _other_third(files: Files, subject: AuditedDataset) -> None:
    add_third(files, subject)
    files[subject.definition(subject.third)] += b"\n"
