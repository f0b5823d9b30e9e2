"""Put a review together: what changed, what is wrong with it, and the verdict."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from generator.problems import Problem, Severity
from generator.problems.messages import one_line, plural, quote
from generator.results.audits import audits_in
from generator.results.evidence import runs_in
from generator.review.change import Change, make_changes
from generator.review.checklist import NO, Answer, answer_all
from generator.review.comparisons import ExecutedComparison
from generator.review.kept import EvidenceLine, evidence_on
from generator.review.known import ReviewContext
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
class Executed:
    """Hold what running the reference tests of the changed definitions showed.

    `problems` are reasons not to believe a pass; a failure is always believed.
    `layers` are what the sandbox could not put up.
    """

    device: str
    passed: int
    failed: tuple[str, ...]
    skipped: int
    problems: tuple[str, ...]
    layers: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    seconds: float = 0.0
    comparisons: tuple[ExecutedComparison, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        compared = [comparison.as_dict() for comparison in self.comparisons]
        return {**vars(self), "comparisons": compared}


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
    kept: tuple[EvidenceLine, ...] = ()
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
            "reasons": list(self.reasons),
            "base": self.revisions.base,
            "head": self.revisions.head or None,
            "base_is": self.revisions.said,
            "changes": [change.as_dict() for change in self.changes],
            "checklist": [answer.as_dict() for answer in self.answers],
            "problems": {
                "new": [problem.as_dict() for problem in self.compared.new],
                "mended": [problem.as_dict() for problem in self.compared.mended],
                "known": self.compared.known,
            },
            "looked_at": {
                "definitions": counts.definitions,
                "workloads": counts.workloads,
            },
            "evidence": list(self.evidence),
            "tests": list(self.tests),
            "others": list(self.others),
            "to_run": list(self.to_run),
            "executed": self.executed.as_dict() if self.executed else None,
        }


def make_review(
    sources: Sources,
    jobs: int,
    *,
    trust_evidence: bool = False,
) -> Review:
    """Return the review of two sides; nothing of either is executed."""
    sides, found = sources.sides, sources.sorted
    changes = make_changes(found.definitions, sides, sources.base, sources.head)
    renamed = {c.old_path: c.path for c in changes if c.kind == "renamed"}
    compared = compare_problems(
        sources.base,
        sources.head,
        frozenset(found.definitions),
        sides.changed,
        renamed,
        jobs,
        is_partial=sources.is_partial,
    )
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
    nothing = not (changes or found.evidence)
    answers = () if nothing else tuple(answer_all(changes, known))
    against = [*_against(sources, compared, answers)]
    gpu = [a for a in answers if a.needs_gpu]
    open_points = [_open(a) for a in gpu]
    verdict = Verdict.APPROVE
    if against:
        verdict = Verdict.CHANGES
    elif gpu:
        verdict = Verdict.GPU
    return Review(
        sources.revisions,
        verdict,
        tuple(against or open_points),
        tuple(changes),
        answers,
        compared,
        tuple(found.evidence),
        tuple(found.tests),
        tuple(found.others),
        tuple(_commands(gpu)),
        kept=evidence_on(changes, known),
    )


def with_results(review: Review, executed: Executed) -> Review:
    """Return a review with what a run showed; a run never makes it better on its own.

    Except where it ran on a GPU, is believed, and compared with a kernel: that is what
    was missing then.
    """
    of_tests = [f"failed when run: {name}" for name in executed.failed[:20]]
    reasons = [*of_tests]
    reasons += [f"the run is not believed: {p}" for p in executed.problems]
    if not executed.passed and not reasons:
        reasons = ["the run compared nothing"]
    verdict, said = review.verdict, review.reasons
    if reasons:
        kept = review.reasons if verdict is Verdict.CHANGES else ()
        verdict, said = Verdict.CHANGES, (*kept, *reasons)
    elif verdict is Verdict.GPU:
        gpu = [a for a in review.answers if a.needs_gpu]
        missing = {name for a in gpu for name in a.others or (a.definition,)}
        if missing <= set(executed.compared):
            verdict, said = Verdict.APPROVE, ()
    values = {**vars(review), "verdict": verdict, "reasons": tuple(said)}
    return Review(**{**values, "executed": executed, "of_tests": tuple(of_tests)})


def _against(
    sources: Sources, compared: ProblemChanges, answers: Sequence[Answer]
) -> Iterator[str]:
    errors = sum(p.severity is Severity.ERROR for p in compared.new)
    if errors:
        yield f"{plural(errors, 'new error')}, first {_first(compared.new)}"
    for answer in answers:
        if answer.answer == NO:
            whom = f"{quote(answer.definition)}: " if answer.definition else ""
            yield f"{whom}{answer.point}: no ({answer.seen})"
    for path in sources.sides.refused[:20]:
        yield f"no checkout would have the path {quote(path, 200)}"
    for path in sources.sorted.misplaced[:20]:
        entry = sources.sides.head.get(path)
        if entry is not None and not entry.is_file:
            kind = "link" if entry.is_link else "submodule or special file"
            yield f"{quote(path, 200)} is a {kind}"


def _first(problems: Sequence[Problem]) -> str:
    first = next(p for p in problems if p.severity is Severity.ERROR)
    return f"{first.rule} in {one_line(first.file)}"


def _open(answer: Answer) -> str:
    whom = f"{quote(answer.definition)}: " if answer.definition else ""
    return f"{whom}{answer.point}: not shown ({answer.seen})"


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
