"""The check of relations between calls of `run()`, which needs no ground truth.

A comparison of it is recorded with the source `metamorphic:<relation>`. It holds a
reference against itself or its peer, so that it never counts as compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernel_judge.checked import Compared, Defect, check
from kernel_judge.checks.pairs import recorded
from kernel_judge.inputs.trial import Trial
from kernel_judge.relation import ReferenceCall, RelatedCalls, Relation
from kernel_judge.source_names import METAMORPHIC
from kernel_judge.subject import Subject


@check
def metamorphic(
    subject: Subject, trial: Trial, relation: Relation, peer: Subject | None = None
) -> Iterator[Compared]:
    """Check that further calls return what follows from the first one.

    `peer` is the subject that the relation compares with, where it names one:
    `SubjectFile.peer`.
    """
    source = f"{METAMORPHIC}{relation.name}"
    claimed = False
    for claim in relation.claims(related_calls(subject, trial, peer)):
        claimed = True
        verdict = claim.verdict(subject.run_tolerance, error_maps=trial.error_maps)
        reason = claim.bound.reason
        one = recorded(subject, trial, claim.output, source, verdict, reason=reason)
        if not verdict.passed:
            more = [f"  the bound: {reason}"]
            if peer is not None:
                more.append(f"  this or {peer.name} is wrong")
            values = claim.actual, claim.expected
            one = replace(one, failures=(*one.failures, *more), values=values)
        yield one
    if not claimed:
        raise Defect(f"{source} claims nothing of {trial.case.name}")


def related_calls(
    subject: Subject, trial: Trial, peer: Subject | None = None
) -> RelatedCalls:
    """Return what a relation compares: this reference's calls, and its peer's."""
    return RelatedCalls(
        trial,
        _calls(subject, trial),
        subject.filled(trial.inputs),
        None if peer is None else _calls(peer, trial),
    )


def _calls(subject: Subject, trial: Trial) -> ReferenceCall:
    return ReferenceCall(
        subject.definition,
        subject.call,
        subject.op.filled_inputs,
        trial.device,
        trial.run_seed,
    )
