"""Bad pull requests that take a failure off the record."""

from __future__ import annotations

import json
from collections.abc import Iterator

from generator.review.audit.changes import runs
from generator.review.audit.pull_request import (
    PullRequest,
    editing,
    removing,
    replacing,
)
from generator.review.audit.subject import EVIDENCE, AuditedDataset, Files
from generator.review.findings import REMOVED, REWRITTEN
from generator.review.review import ReviewRequest


def of_failures() -> Iterator[PullRequest]:
    """Yield failures that are replaced, or that another result of the run stands for."""
    yield PullRequest(
        "replaced: a failure on record",
        replacing(EVIDENCE, '"FAILED"', '"PASSED"'),
        REWRITTEN.id,
        ReviewRequest(trust_evidence=True),
        before=_failed,
    )
    yield PullRequest(
        "replaced: a failure beside a pass of the same run",
        editing(EVIDENCE, _without_first_run),
        REWRITTEN.id,
        ReviewRequest(trust_evidence=True),
        before=_failed_and_passed,
    )
    yield PullRequest(
        "replaced: a failure in a file before that of a pass",
        removing("verification/2026-01-00_audit.json"),
        REWRITTEN.id,
        before=_failed_before,
    )
    yield PullRequest(
        "replaced: a failed test is off the record",
        runs(lambda entries, subject: entries[subject.first].pop("failed")),
        REMOVED.id,
        ReviewRequest(trust_evidence=True),
        before=runs(
            lambda entries, subject: entries[subject.first].update(failed=["test_x"])
        ),
    )


def _failed(files: Files, subject: AuditedDataset) -> None:
    files[EVIDENCE] = files[EVIDENCE].replace(b'"PASSED"', b'"FAILED"', 1)


def _without_first_run(value: dict[str, list[object]]) -> None:
    value["runs"].pop(0)


def _failed_and_passed(files: Files, subject: AuditedDataset) -> None:
    passed = json.loads(files[EVIDENCE])
    _failed(files, subject)
    failed = json.loads(files[EVIDENCE])
    failed["runs"] += passed["runs"]
    files[EVIDENCE] = json.dumps(failed).encode()


def _failed_before(files: Files, subject: AuditedDataset) -> None:
    failed = files[EVIDENCE].replace(b'"PASSED"', b'"FAILED"')
    files["verification/2026-01-00_audit.json"] = failed
