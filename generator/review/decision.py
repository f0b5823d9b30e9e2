"""Decisions of a review, and the reasons for them, by weight."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum

from generator.reports.report import Status


class Decision(str, Enum):
    """The decision of a review; the value is the verdict in words, least first."""

    APPROVE = "approve"
    GPU = "needs a GPU"
    PERSON = "needs a person"
    CHANGES = "changes needed"

    @property
    def status(self) -> Status:
        """Return the status of a report that ends so."""
        known = {Decision.APPROVE: Status.PASSED, Decision.CHANGES: Status.FAILED}
        return known.get(self, Status.OPEN)


class Weight(IntEnum):
    """The weight of a reason: a wrong value comes before a missing file."""

    WRONG_VALUE = 0
    FALSE_CLAIM = 1
    WEAKER_CHECK = 2
    REMOVED = 3
    PATH = 4
    ERROR = 5
    POINT = 6
    RUNS = 7
    CLAIM = 8
    UNKNOWN = 9


@dataclass(frozen=True)
class Reason:
    """One reason against approving: what it asks for, and in a line why.

    `point` names what noticed it: a rule of findings, a point of the checklist, or a
    step of --execute. `files` are those that it is about.
    """

    decision: Decision
    weight: Weight
    point: str
    text: str
    files: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


_ORDER = list(Decision)


def decide(reasons: Iterable[Reason]) -> Decision:
    """Return what reasons come to: the heaviest demand of any."""
    return max((r.decision for r in reasons), key=_ORDER.index, default=_ORDER[0])


def by_weight(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """Return reasons as a report lists them: what must change first, then by weight."""
    return tuple(
        sorted(reasons, key=lambda r: (-_ORDER.index(r.decision), int(r.weight)))
    )
