"""Put a review together: what changed, what is wrong with it, and the verdict."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from generator.dataset.artifacts import Key
from generator.dataset.changes import Sorted
from generator.dataset.paths import NOTHING_THERE, VERIFICATION
from generator.problems import Problem, Severity
from generator.problems.messages import one_line, plural, quote
from generator.reports.report import Status
from generator.results.audits import audits_in
from generator.results.evidence import runs_in
from generator.review.change import Change, make_changes
from generator.review.checklist import NO, Answer, ReviewContext, answer_all
from generator.review.sources import Revisions, Sources
from generator.validation.definition_check import DefinitionFiles, summarised
from generator.validation.parallel import outcomes
from generator.validation.validate import Counts, ValidationPlan, make_plan, run_plan

if TYPE_CHECKING:
    from generator.review.executed import Executed
    from generator.review.solutions import EvaluatedChange

VERDICTS = {
    Status.PASSED: "approve",
    Status.FAILED: "changes needed",
    Status.OPEN: "needs a GPU",
}
"""What a review comes to, in words."""

_NAMED = 20
"""Definitions that a command names one by one; for more it is run on all."""


@dataclass(frozen=True)
class ProblemChanges:
    """Hold the Problems of head that base had not, those it mended, and the rest.

    `known` counts those that both sides have of what is judged.
    """

    new: tuple[Problem, ...]
    mended: tuple[Problem, ...]
    known: int
    counts: Counts


def compare_problems(
    sources: Sources, renamed: Mapping[str, str], jobs: int
) -> ProblemChanges:
    """Validate what is judged of both sides, beside the other definitions.

    `renamed` maps old to new paths: what was wrong with the old file is not blamed on
    the new one.
    """
    counts = Counts()
    head, base = make_plan(sources.head), make_plan(sources.base)
    # a dataset that begins with this change mends nothing
    there = tuple(p for p in base.problems if p.rule not in NOTHING_THERE)
    base = replace(base, problems=there)
    others = {
        _of(unit): summarised(sources.head, unit.file)
        for unit in head.units
        if _of(unit) not in sources.judged
    }

    def problems(plan: ValidationPlan, counts: Counts) -> Iterator[Problem]:
        judged = [unit for unit in plan.units if _of(unit) not in others]
        fresh = outcomes(plan.root, judged, None, jobs)
        checked = (
            (unit, others[_of(unit)]) if _of(unit) in others else next(fresh)
            for unit in plan.units
        )
        return run_plan(plan, counts, checked=checked)

    old: dict[tuple[str, ...], list[Problem]] = defaultdict(list)
    for problem in problems(base, Counts()):
        old[_key(problem, renamed)].append(problem)
    new, known = [], 0
    for problem in problems(head, counts):
        if before := old[_key(problem, {})]:
            before.pop()
            known += 1
        else:
            new.append(problem)
    mended = (problem for left in old.values() for problem in left)
    by_place = sorted(mended, key=lambda problem: (problem.file, problem.rule))
    return ProblemChanges(tuple(new), tuple(by_place), known, counts)


def _of(unit: DefinitionFiles) -> Key:
    return (unit.file.op_type, unit.file.name)


def _key(problem: Problem, renamed: Mapping[str, str]) -> tuple[str, ...]:
    """Return what makes a Problem the same one; its line may have moved."""
    file = renamed.get(problem.file, problem.file)
    return (problem.rule, file, problem.pointer, problem.message)


@dataclass(frozen=True)
class Review:
    """Hold a whole review.

    `reasons` lead to the verdict, and `of_tests` are those of them that name a test
    which failed when it was run; `to_run` are commands for a machine with a GPU;
    `files` are all that changed; `known` is what the points were answered from.
    """

    revisions: Revisions
    verdict: Status
    reasons: tuple[str, ...]
    changes: tuple[Change, ...]
    answers: tuple[Answer, ...]
    compared: ProblemChanges
    files: Sorted
    to_run: tuple[str, ...]
    executed: Executed | None = None
    known: ReviewContext | None = None
    of_tests: tuple[str, ...] = ()
    evaluated: EvaluatedChange | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether nothing of the dataset changed."""
        return not (
            self.changes or self.files.evidence or self.files.tests or self.reasons
        )

    def count(self, severity: Severity) -> int:
        """Return how many new Problems there are of a severity."""
        return sum(p.severity is severity for p in self.compared.new)

    def as_dict(self) -> dict[str, Any]:
        """Return everything that JSON has of it."""
        counts = self.compared.counts
        return {
            "verdict": VERDICTS[self.verdict],
            "reasons": self.reasons,
            "base": self.revisions.base,
            "head": self.revisions.head or None,
            "base_is": self.revisions.said,
            "changes": [change.as_dict() for change in self.changes],
            "checklist": self.answers,
            "problems": {
                "new": [problem.as_dict() for problem in self.compared.new],
                "mended": [problem.as_dict() for problem in self.compared.mended],
                "known": self.compared.known,
            },
            "looked_at": {
                "definitions": counts.definitions,
                "workloads": counts.workloads,
            },
            "evidence": self.files.evidence,
            "tests": self.files.tests,
            "others": self.files.others,
            "to_run": self.to_run,
            "executed": self.executed,
            "evaluated": self.evaluated and self.evaluated.as_dict(),
        }


def make_review(sources: Sources, jobs: int, *, trust_evidence: bool = False) -> Review:
    """Return the review of two sides; nothing of either is executed."""
    sides, found = sources.sides, sources.sorted
    changes = make_changes(found.definitions, sides, sources.base, sources.head)
    renamed = {c.old_path: c.path for c in changes if c.kind == "renamed"}
    compared = compare_problems(sources, renamed, jobs)
    runs, audits = runs_in(sources.head), audits_in(sources.head)
    is_kept = not any(path.startswith(f"{VERIFICATION}/") for path in sides.changed)
    known = ReviewContext(
        sources.head,
        sides,
        compared.new,
        runs if is_kept else runs_in(sources.base),
        runs,
        trust_evidence,
        audits if is_kept else audits_in(sources.base),
        audits,
    )
    is_asked = changes or found.evidence
    answers = tuple(answer_all(changes, known)) if is_asked else ()
    against = list(_against(sources, compared, answers))
    gpu = [answer for answer in answers if answer.needs_gpu]
    verdict = Status.OPEN if gpu else Status.PASSED
    return Review(
        sources.revisions,
        Status.FAILED if against else verdict,
        tuple(against or map(str, gpu)),
        tuple(changes),
        answers,
        compared,
        found,
        tuple(_commands(gpu)),
        known=known,
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
        kept = reasons if verdict is Status.FAILED else ()
        verdict, reasons = Status.FAILED, (*kept, *against)
    elif verdict is Status.OPEN:
        gpu = [a for a in review.answers if a.needs_gpu]
        missing = {name for a in gpu for name in a.others or (a.definition,)}
        if missing <= set(executed.compared):
            verdict, reasons = Status.PASSED, ()
    return replace(
        review, verdict=verdict, reasons=reasons, executed=executed, of_tests=of_tests
    )


def with_solutions(review: Review, evaluated: EvaluatedChange) -> Review:
    """Return a review with the verdicts on solutions; they never make it better."""
    verdict, reasons = review.verdict, review.reasons
    if evaluated.against:
        kept = reasons if verdict is Status.FAILED else ()
        verdict, reasons = Status.FAILED, (*kept, *evaluated.against[:_NAMED])
    return replace(review, verdict=verdict, reasons=reasons, evaluated=evaluated)


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
