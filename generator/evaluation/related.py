"""Relations between calls, applied to a solution whatever it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from generator.evaluation.rounds import Round
from generator.evaluation.verdict import INCORRECT_NUMERICAL, Refused
from generator.execution.outcome import CannotRun
from generator.problems.messages import one_line
from kernel_judge.checks.related import related_calls
from kernel_judge.relation import Claim, Relation


def claims_of(
    relation: Relation, one: Round, run: Callable[..., Any]
) -> Iterator[Claim]:
    """Yield the claims of a relation on what `run()` answers in a case.

    Raises Refused where no further call follows from its answers, as from an index that
    is none, though one does from the reference's.
    """
    subject = one.subject.with_run(run)
    # relations make their calls on the CPU, where the session takes inputs from
    trial = subject.trial(
        one.case, run=run, make_inputs=one.make_inputs, shift=one.shift
    )
    try:
        yield from relation.claims(related_calls(subject, trial))
    except (Refused, CannotRun):
        raise
    except Exception as error:
        if not _can_be_asked(relation, one):
            raise
        why = one_line(f"nothing follows from its outputs: {error}", 400)
        raise Refused(INCORRECT_NUMERICAL, why) from error


def _can_be_asked(relation: Relation, one: Round) -> bool:
    """Return whether a relation makes its calls and claims of the reference's answers."""
    trial = one.subject.trial(one.case, make_inputs=one.make_inputs, shift=one.shift)
    try:
        for _ in relation.claims(related_calls(one.subject, trial)):
            pass
    except Exception:  # noqa: BLE001 - whatever it is, it is no fault of the solution
        return False
    return True
