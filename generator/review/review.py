"""Put a review together: what changed, what is wrong with it, and the verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from generator.dataset.artifacts import Key
from generator.dataset.changes import Sorted
from generator.dataset.paths import NOTHING_THERE, VERIFICATION
from generator.dataset.schema import checked_definition, read_checked
from generator.problems import Failure, Problem, Severity
from generator.problems.messages import one_line, plural, quote, some
from generator.results.audits import audits_in
from generator.results.evidence import runs_in
from generator.review.change import Change, make_changes
from generator.review.checklist import ChecklistAnswer, answer_all
from generator.review.checks import CheckChange
from generator.review.commands import commands
from generator.review.context import ReviewContext
from generator.review.decision import Decision, Reason, Weight, by_weight, decide
from generator.review.findings import CLAIM, of_paths, of_recordings, reasons_of
from generator.review.loosened import loosened
from generator.review.points import AT_WORKLOADS
from generator.review.removals import AcceptedRemovals, removals
from generator.review.rendered import check_tests
from generator.review.settings import read_settings
from generator.review.sources import BaseAndHead, Revisions, Sources
from generator.review.treatment import SOLUTIONS, TRACES, TREATMENTS, Treatment
from generator.rules.accepted import read_accepted
from generator.validation.definition_check import (
    CheckedDefinition,
    DefinitionFiles,
    summarised,
)
from generator.validation.parallel import outcomes
from generator.validation.validate import Counts, ValidationPlan, make_plan, run_plan

if TYPE_CHECKING:
    from generator.review.crossed import Crossed
    from generator.review.executed import Executed
    from generator.review.solutions import EvaluatedChange

_NAMED = 20
"""Definitions that a command names one by one; for more it is run on all."""


@dataclass(frozen=True)
class ProblemChanges:
    """The Problems of head that base had not, those it mended, and the rest.

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
    head = make_plan(sources.head, elsewhere=sources.unwritten_head)
    base = make_plan(sources.base, elsewhere=sources.unwritten_base)
    # a dataset that begins with this change mends nothing
    there = tuple(p for p in base.problems if p.rule not in NOTHING_THERE)
    base = replace(base, problems=there)
    others = _others(sources, head)

    def problems(plan: ValidationPlan, counts: Counts) -> Iterator[Problem]:
        judged = [unit for unit in plan.units if _of(unit) not in others]
        fresh = outcomes(plan.root, judged, None, jobs)
        checked = (
            (unit, others[_of(unit)]) if _of(unit) in others else next(fresh)
            for unit in plan.units
        )
        # of both sides by the base's word: a change can't accept its own errors
        accepted = replace(read_accepted(sources.base), problems=())
        return run_plan(plan, counts, checked=checked, accepted=accepted)

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


def _others(sources: Sources, head: ValidationPlan) -> dict[Key, CheckedDefinition]:
    """Return what the definitions beside those that are judged are compared by."""
    oids = [sources.sides.head[file.path].oid for file in sources.unwritten_head]
    others = {
        (file.op_type, file.name): summarised(checked_definition(data, file.path), file)
        for file, data in zip(sources.unwritten_head, sources.blobs(oids), strict=True)
    }
    lying = (unit for unit in head.units if _of(unit) not in sources.judged)
    for key, file in ((_of(unit), unit.file) for unit in lying):
        if key not in others:
            read = read_checked(sources.head, file.path, "definition")
            others[key] = summarised(read, file)
    return others


def _of(unit: DefinitionFiles) -> Key:
    return (unit.file.op_type, unit.file.name)


def _key(problem: Problem, renamed: Mapping[str, str]) -> tuple[str, ...]:
    """Return what makes a Problem the same one; its line may have moved."""
    file = renamed.get(problem.file, problem.file)
    return (problem.rule, file, problem.pointer, problem.message)


@dataclass(frozen=True)
class ReviewRequest:
    """Options and acceptances of a review.

    `accepted` are as `removal:PATH`, `unproven` are definitions with which nothing need
    be compared.
    """

    trust_evidence: bool = False
    accepted: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()


@dataclass(frozen=True)
class Review:
    """A whole review.

    `grounds` lead to the decision; `to_run` are commands for a machine with a GPU;
    `files` are all that changed; `findings` are what is wrong with files, whatever is in
    them; `checks` are what tests check otherwise; `known` is what the points were
    answered from.
    """

    revisions: Revisions
    grounds: tuple[Reason, ...]
    changes: tuple[Change, ...]
    answers: tuple[ChecklistAnswer, ...]
    compared: ProblemChanges
    files: Sorted
    to_run: tuple[str, ...]
    findings: tuple[Problem, ...] = ()
    checks: tuple[CheckChange, ...] = ()
    treatments: Mapping[str, Treatment] = field(default_factory=dict)
    executed: Executed | None = None
    known: ReviewContext | None = None
    evaluated: EvaluatedChange | None = None
    crossed: Crossed | None = None

    @property
    def decision(self) -> Decision:
        """Return what the grounds come to."""
        return decide(self.grounds)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return the grounds in words, the heaviest first."""
        return tuple(map(str, by_weight(self.grounds)))

    @property
    def is_empty(self) -> bool:
        """Return whether nothing changed."""
        return not (self.treatments or self.grounds)

    def count(self, severity: Severity) -> int:
        """Return how many new Problems there are of a severity."""
        problems = (*self.findings, *self.compared.new)
        return sum(p.severity is severity for p in problems)

    def as_dict(self) -> dict[str, Any]:
        """Return everything that JSON has of it."""
        counts = self.compared.counts
        return {
            "verdict": self.decision.value,
            "reasons": self.reasons,
            "grounds": [
                {
                    "point": reason.point,
                    "asks": reason.decision.value,
                    "text": reason.text,
                    "files": reason.files,
                }
                for reason in by_weight(self.grounds)
            ],
            "base": self.revisions.base,
            "head": self.revisions.head or None,
            "base_is": self.revisions.said,
            "classes": [
                {
                    "class": treatment.name,
                    "files": paths,
                    "checked": treatment.checked,
                    "not_checked": treatment.unchecked,
                    "could": treatment.could,
                }
                for treatment, paths in self.by_treatment().items()
            ],
            "checks": self.checks,
            "changes": [change.as_dict() for change in self.changes],
            "checklist": self.answers,
            "problems": {
                "new": [p.as_dict() for p in (*self.findings, *self.compared.new)],
                "mended": [problem.as_dict() for problem in self.compared.mended],
                "known": self.compared.known,
            },
            "looked_at": {
                "definitions": counts.definitions,
                "workloads": counts.workloads,
            },
            "to_run": self.to_run,
            "executed": self.executed,
            "evaluated": self.evaluated and self.evaluated.as_dict(),
            "software_runs": self.crossed,
        }

    def by_treatment(self) -> dict[Treatment, list[str]]:
        """Return the changed paths by their treatment, in the order of a report."""
        by_treatment: dict[Treatment, list[str]] = {t: [] for t in TREATMENTS}
        for path, treatment in self.treatments.items():
            by_treatment[treatment].append(path)
        return {treatment: paths for treatment, paths in by_treatment.items() if paths}


def make_review(
    sources: Sources, jobs: int, asked: ReviewRequest | None = None
) -> Review:
    """Return the review of two sides; nothing of either is executed.

    Raises Failure where the base's settings can't be read, or where what was accepted is
    not there.
    """
    asked = ReviewRequest() if asked is None else asked
    settings, accepted = read_settings(sources.base), AcceptedRemovals(asked.accepted)
    sides, changed = sources.sides, sources.sorted
    changes = make_changes(changed.definitions, sides, sources.base, sources.head)
    renamed = {c.old_path: c.path for c in changes if c.kind == "renamed"}
    compared = compare_problems(sources, renamed, jobs)
    tests = check_tests(sources)
    every = (
        *of_paths(sources),
        *of_recordings(sources),
        *tests.problems,
        *loosened(changes),
        *removals(sources, changes),
    )
    findings = tuple(p for p in every if not accepted.takes(p))
    if accepted.unused:
        raise Failure(
            f"--accept {quote(accepted.unused[0], 200)}: nothing of this change is that."
        )
    if asked.trust_evidence:
        findings = tuple(p for p in findings if p.rule != CLAIM.id)
    runs, audits = runs_in(sources.head), audits_in(sources.head)
    is_kept = not any(path.startswith(f"{VERIFICATION}/") for path in sides.changed)
    known = ReviewContext(
        sources.head,
        sides,
        compared.new,
        runs if is_kept else runs_in(sources.base),
        runs,
        asked.trust_evidence,
        audits if is_kept else audits_in(sources.base),
        audits,
        settings,
        tests.equal,
        tests.stale,
        asked.unproven,
    )
    is_asked = changes or changed.evidence
    answers = tuple(answer_all(changes, known)) if is_asked else ()
    grounds = [*reasons_of(findings), *_of_problems(compared.new)]
    grounds += [reason for a in answers if (reason := a.reason) is not None]
    trusted = (TRACES,) if asked.trust_evidence else ()
    grounds += _not_run(sides, trusted)
    return Review(
        sources.revisions,
        by_weight(grounds),
        tuple(changes),
        answers,
        compared,
        changed,
        tuple(commands([a for a in answers if a.needs_gpu], sides.head)),
        findings,
        tests.changes,
        sides.treatments,
        known=known,
    )


def with_results(review: Review, executed: Executed) -> Review:
    """Return a review with what a run showed; a run never makes it better on its own.

    Except where it ran on a GPU, is believed, and compared with a kernel: that is what
    was missing then.
    """
    reasons = [
        Reason(
            Decision.CHANGES, Weight.WRONG_VALUE, FAILED_RUN, f"failed when run: {name}"
        )
        for name in executed.failed[:_NAMED]
    ]
    reasons += [
        Reason(
            Decision.CHANGES, Weight.FALSE_CLAIM, RUN, f"the run is not believed: {p}"
        )
        for p in executed.problems
    ]
    if not executed.passed and not reasons:
        message = "the run compared nothing"
        reasons.append(Reason(Decision.CHANGES, Weight.FALSE_CLAIM, RUN, message))
    open_grounds = list(review.grounds)
    if not reasons:
        agreed = {*executed.compared}
        met = {
            reason
            for answer in review.answers
            if answer.needs_gpu
            and answer.id != AT_WORKLOADS
            and agreed.issuperset(answer.others or (answer.definition,))
            and (reason := answer.reason) is not None
        }
        open_grounds = [reason for reason in open_grounds if reason not in met]
    grounds = by_weight([*open_grounds, *reasons])
    return replace(review, grounds=grounds, executed=executed)


def with_software(review: Review, crossed: Crossed) -> Review:
    """Return a review with what the tests of both sides' software showed."""
    grounds = by_weight([*review.grounds, *crossed.reasons])
    return replace(review, grounds=grounds, crossed=crossed)


def with_solutions(review: Review, evaluated: EvaluatedChange) -> Review:
    """Return a review with the verdicts on solutions and on what traces claim."""
    against = [
        Reason(Decision.CHANGES, Weight.FALSE_CLAIM, SOLUTIONS_RUN, words)
        for words in evaluated.against[:_NAMED]
    ]
    grounds = [reason for reason in review.grounds if reason.point != NOT_RUN]
    is_trusted = review.known is not None and review.known.trust_evidence
    unseen = [*evaluated.unknown, *([] if is_trusted else evaluated.unmeasured)]
    for words in unseen[:_NAMED]:
        grounds.append(Reason(Decision.GPU, Weight.CLAIM, SOLUTIONS_RUN, words))
    for words in evaluated.contrary[:_NAMED]:
        grounds.append(Reason(Decision.PERSON, Weight.CLAIM, SOLUTIONS_RUN, words))
    return replace(review, grounds=by_weight([*grounds, *against]), evaluated=evaluated)


FAILED_RUN, RUN = "executed-failed", "executed"
SOLUTIONS_RUN, NOT_RUN = "evaluated", "not-evaluated"
NEW_ERROR = "new-error"
"""Points of reasons that neither a rule of findings nor the checklist has."""


def _of_problems(new: Sequence[Problem]) -> Iterator[Reason]:
    errors = [p for p in new if p.severity is Severity.ERROR]
    if errors:
        files = tuple(dict.fromkeys(p.file for p in errors))
        first = f"{errors[0].rule} in {one_line(errors[0].file)}"
        message = f"{plural(len(errors), 'new error')}, first {first}"
        yield Reason(Decision.CHANGES, Weight.ERROR, NEW_ERROR, message, files)


def _not_run(sides: BaseAndHead, trusted: Collection[Treatment]) -> Iterator[Reason]:
    """Yield what the change brings that only a run can judge."""
    for treatment in (SOLUTIONS, TRACES):
        of_kind = (p for p, t in sides.treatments.items() if t is treatment)
        paths = [path for path in of_kind if path in sides.head]
        if paths and treatment not in trusted:
            named = some([quote(path, 120) for path in paths], _NAMED)
            message = f"{named}: not run here (trace-dataset review --execute)"
            yield Reason(Decision.PERSON, Weight.CLAIM, NOT_RUN, message, tuple(paths))
