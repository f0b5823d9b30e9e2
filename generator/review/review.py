"""Put a review together: what changed, what is wrong with it, and the verdict."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from generator.problems import Severity
from generator.problems.messages import one_line, plural, quote
from generator.results.audits import audits_in
from generator.results.evidence import runs_in
from generator.review.change import Change, make_changes
from generator.review.checklist import NO, Answer, ReviewContext, answer_all
from generator.review.executed import Executed
from generator.review.page.rows import PageRow, evidence_rows
from generator.review.problems import ProblemChanges, compare_problems
from generator.review.sources import Revisions, Sources

_NAMED = 20
"""Definitions that a command names one by one; for more it is run on all."""


class Verdict(str, Enum):
    """What a review comes to."""

    APPROVE = "approve"
    CHANGES = "changes needed"
    GPU = "needs a GPU"


@dataclass(frozen=True)
class Review:
    """Hold a whole review.

    `reasons` lead to the verdict, and `of_tests` are those of them that name a test
    which failed when it was run; `to_run` are commands for a machine with a GPU;
    `others` are changed files that are none of the dataset's; `kept` is what
    verification/ has on the changed definitions.
    """

    revisions: Revisions
    verdict: Verdict
    reasons: tuple[str, ...]
    changes: tuple[Change, ...]
    answers: tuple[Answer, ...]
    compared: ProblemChanges
    evidence: tuple[str, ...]
    tests: tuple[str, ...]
    others: tuple[str, ...]
    to_run: tuple[str, ...]
    executed: Executed | None = None
    kept: tuple[PageRow, ...] = ()
    of_tests: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether nothing of the dataset changed."""
        return not (self.changes or self.evidence or self.tests or self.reasons)

    def count(self, severity: Severity) -> int:
        """Return how many new Problems there are of a severity."""
        return sum(p.severity is severity for p in self.compared.new)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        counts = self.compared.counts
        return {
            "verdict": self.verdict.value,
            "reasons": self.reasons,
            "base": self.revisions.base,
            "head": self.revisions.head or None,
            "base_is": self.revisions.said,
            "changes": [change.as_dict() for change in self.changes],
            "checklist": [vars(answer) for answer in self.answers],
            "problems": {
                "new": [problem.as_dict() for problem in self.compared.new],
                "mended": [problem.as_dict() for problem in self.compared.mended],
                "known": self.compared.known,
            },
            "looked_at": {
                "definitions": counts.definitions,
                "workloads": counts.workloads,
            },
            "evidence": self.evidence,
            "tests": self.tests,
            "others": self.others,
            "to_run": self.to_run,
            "executed": self.executed.as_dict() if self.executed else None,
        }


def make_review(sources: Sources, jobs: int, *, trust_evidence: bool = False) -> Review:
    """Return the review of two sides; nothing of either is executed."""
    sides, found = sources.sides, sources.sorted
    changes = make_changes(found.definitions, sides, sources.base, sources.head)
    renamed = {c.old_path: c.path for c in changes if c.kind == "renamed"}
    compared = compare_problems(sources, renamed, jobs)
    known = ReviewContext(
        sources.head,
        sides,
        compared.new,
        runs_in(sources.base),
        runs_in(sources.head),
        trust_evidence,
        audits_in(sources.base),
        audits_in(sources.head),
    )
    is_asked = changes or found.evidence
    answers = tuple(answer_all(changes, known)) if is_asked else ()
    against = list(_against(sources, compared, answers))
    gpu = [answer for answer in answers if answer.needs_gpu]
    verdict = Verdict.GPU if gpu else Verdict.APPROVE
    return Review(
        sources.revisions,
        Verdict.CHANGES if against else verdict,
        tuple(against or map(str, gpu)),
        tuple(changes),
        answers,
        compared,
        tuple(found.evidence),
        tuple(found.tests),
        tuple(found.others),
        tuple(_commands(gpu)),
        kept=tuple(evidence_rows(changes, known)),
    )


def with_results(review: Review, executed: Executed) -> Review:
    """Return a review with what a run showed; a run never makes it better on its own.

    Except where it ran on a GPU, is believed, and compared with a kernel: that is what
    was missing then.
    """
    of_tests = tuple(f"failed when run: {name}" for name in executed.failed[:20])
    doubts = tuple(f"the run is not believed: {p}" for p in executed.problems)
    against = (*of_tests, *doubts)
    if not executed.passed and not against:
        against = ("the run compared nothing",)
    verdict, reasons = review.verdict, review.reasons
    if against:
        kept = reasons if verdict is Verdict.CHANGES else ()
        verdict, reasons = Verdict.CHANGES, (*kept, *against)
    elif verdict is Verdict.GPU:
        gpu = [a for a in review.answers if a.needs_gpu]
        missing = {name for a in gpu for name in a.others or (a.definition,)}
        if missing <= set(executed.compared):
            verdict, reasons = Verdict.APPROVE, ()
    return replace(
        review, verdict=verdict, reasons=reasons, executed=executed, of_tests=of_tests
    )


def _against(
    sources: Sources, compared: ProblemChanges, answers: Sequence[Answer]
) -> Iterator[str]:
    errors = [p for p in compared.new if p.severity is Severity.ERROR]
    if errors:
        first = f"{errors[0].rule} in {one_line(errors[0].file)}"
        yield f"{plural(len(errors), 'new error')}, first {first}"
    yield from (str(answer) for answer in answers if answer.answer == NO)
    for path in sources.sides.refused[:20]:
        yield f"no checkout would have the path {quote(path, 200)}"
    for path in sources.sorted.misplaced[:20]:
        entry = sources.sides.head.get(path)
        if entry is not None and not entry.is_file:
            kind = "link" if entry.is_link else "submodule or special file"
            yield f"{quote(path, 200)} is a {kind}"


def _commands(answers: Sequence[Answer]) -> Iterator[str]:
    """Yield what to run on a machine with a GPU."""
    if not answers:
        return
    named = (name for a in answers for name in (a.definition, *a.others) if name)
    names = [shlex.quote(one_line(name)) for name in dict.fromkeys(named)]
    chosen, tested = "--all", ""
    if len(names) <= _NAMED:
        chosen = " ".join(f"--definition-name {name}" for name in names)
        tested = "".join(f" --definition {name}" for name in names)
    yield f"gen-tests {chosen}"
    yield f"pytest tests/references{tested} --device cuda --results results.jsonl"
    yield "trace-dataset verify --record results.jsonl"
    yield f"trace-dataset record {chosen}"
