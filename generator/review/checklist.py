"""Answer the checklist of a dataset pull request, each point with where it was seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from generator.problems import Problem
from generator.problems.messages import one_line, plural, quote, some
from generator.review.answers import ADVICE, NO, UNKNOWN, YES, PointFinding
from generator.review.change import Change
from generator.review.context import ReviewContext
from generator.review.decision import Decision, Reason, Weight
from generator.review.points import POINTS, agreed_finding
from generator.rules.basis import basis_of

ONE_DEFINITION = "one definition per pull request"


@dataclass(frozen=True)
class ChecklistAnswer:
    """One point of the checklist and what was found.

    `definition` is empty for a point about the whole change; `others` are definitions
    that the change does not change and that such a point is about. `id` is the name of
    the point in review.toml, and `required` what that says of it.
    """

    definition: str
    point: str
    answer: str
    seen: str
    needs_gpu: bool = False
    others: tuple[str, ...] = ()
    id: str = ""
    required: bool = True

    def __str__(self) -> str:
        whom = f"{quote(self.definition)}: " if self.definition else ""
        answer = "not shown" if self.answer == UNKNOWN else self.answer
        return f"{whom}{self.point}: {answer} ({self.seen})"

    @property
    def reason(self) -> Reason | None:
        """Return the reason against approving that it is, None where it is none."""
        if not self.required or self.answer not in (NO, UNKNOWN):
            return None
        decision = Decision.GPU if self.needs_gpu else Decision.PERSON
        weight = Weight.CLAIM
        if self.answer == NO:
            decision, weight = Decision.CHANGES, Weight.POINT
        return Reason(decision, weight, self.id, str(self))


def answer_all(
    changes: Sequence[Change], known: ReviewContext
) -> Iterator[ChecklistAnswer]:
    """Yield the answers on the change as a whole, then on each definition.

    A point that is not met is answered no where the dataset requires it, else as advice.
    """
    required = known.settings.required

    def answer(
        name: str, id: str, point: str, finding: PointFinding
    ) -> ChecklistAnswer:
        is_required = id in required or finding.is_claim
        if finding.answer == NO and not is_required:
            finding = finding._replace(answer=ADVICE)
        needs_gpu = finding.needs_gpu and is_required
        return ChecklistAnswer(
            name, point, finding.answer, finding.seen, needs_gpu, (), id, is_required
        )

    yield answer("", "one-definition", ONE_DEFINITION, _one_definition(changes))
    yield from _brought(changes, known)
    for change in changes:
        if change.kind == "removed":
            continue
        if change.new is None:
            seen = f"{one_line(change.path)}: see the problems"
            bad = PointFinding(NO, seen)
            yield answer(change.name, "readable", "the definition can be read", bad)
            continue
        for id, point, subject, find in POINTS:
            objections = known.objections.get((change.key, subject))
            result = find(change, change.new, known)
            if objections:
                result = PointFinding(NO, _shown(objections))
            yield answer(change.name, id, point, result)


def _one_definition(changes: Sequence[Change]) -> PointFinding:
    new = [c for c in changes if c.kind in ("new", "changed", "renamed")]
    names = some([quote(c.name) for c in new], 5)
    seen = f"{plural(len(new), 'definition')}: {names}" if new else "none"
    return PointFinding(YES if len(new) <= 1 else NO, seen)


def _brought(
    changes: Sequence[Change], known: ReviewContext
) -> Iterator[ChecklistAnswer]:
    """Yield what the change says of texts of which no other answer doubts that.

    Evidence on what the change rewrites is doubted where a kernel has to agree with it.
    """
    if known.after is known.before:
        # verification/ is no part of the change
        return
    untold = replace(known, trust_evidence=False)
    doubted_there = {
        (new.name, basis_of(new))
        for change in changes
        if (new := change.new) is not None
        and agreed_finding(change, new, untold).needs_gpu
    }
    brought = {
        name
        for run in known.after
        for name, entry in run.definitions.items()
        if not untold.counts(run, name) and (name, entry.sha256) not in doubted_there
    }
    if brought:
        others = tuple(sorted(brought))
        first = ", ".join(quote(name) for name in others[:5])
        seen = f"verification/ is new or other on {len(others)}: {first}"
        doubted = not known.trust_evidence
        point = "evidence is what it was"
        answer = UNKNOWN if doubted else YES
        yield ChecklistAnswer("", point, answer, seen, doubted, others, "agreed")


def _shown(problems: Sequence[Problem]) -> str:
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    first = problems[0]
    return f"{first.rule}: {one_line(first.file)}: {first.message}{more}"
