"""Verdicts on a solution, from the best to the worst, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

PASSED, INCORRECT_NUMERICAL = "PASSED", "INCORRECT_NUMERICAL"
INCORRECT_DTYPE, INCORRECT_SHAPE = "INCORRECT_DTYPE", "INCORRECT_SHAPE"
RUNTIME_ERROR, TIMEOUT = "RUNTIME_ERROR", "TIMEOUT"
OUT_OF_MEMORY = "OUT_OF_MEMORY"
"""Of a case whose call could not have the memory that it asked for; others are judged."""
COMPILE_ERROR, REWARD_HACK = "COMPILE_ERROR", "REWARD_HACK"
SKIPPED = "SKIPPED"
"""Of a solution that needs what this machine lacks, which is no verdict on it."""
JUDGE_ERROR, INVALID = "JUDGE_ERROR", "INVALID"
"""Of a solution that was not judged: the judge failed, or its file can't be taken."""

ORDER = (
    *(SKIPPED, PASSED, INCORRECT_NUMERICAL, INCORRECT_DTYPE, INCORRECT_SHAPE),
    *(OUT_OF_MEMORY, RUNTIME_ERROR, TIMEOUT, COMPILE_ERROR, REWARD_HACK),
    *(INVALID, JUDGE_ERROR),
)
NEAREST = {REWARD_HACK: RUNTIME_ERROR, OUT_OF_MEMORY: RUNTIME_ERROR}
"""The statuses of flashinfer-bench, where it lacks one of ours."""


class Refused(Exception):
    """Carry a verdict, in one line the reason, and the errors that were measured.

    `is_raised` says that the call raised it: the process answers further questions.
    """

    def __init__(self, verdict: str, reason: str, *, is_raised: bool = False) -> None:
        super().__init__(reason)
        self.verdict, self.reason, self.is_raised = verdict, reason, is_raised
        self.metrics: Mapping[str, float] = {}


@dataclass(frozen=True)
class CaseVerdict:
    """The verdict on one case, relation or workload.

    `workload` is that of the dataset that it is of. `metrics` are the worst of its
    outputs, `timing` what a timed run measured.
    """

    case: str
    verdict: str
    reason: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    workload: Mapping[str, Any] | None = None
    timing: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class SolutionVerdict:
    """The verdict on a solution: the worst of its cases, and the first of these.

    `notes` say what the verdict does not rest on: no oracle, cases that were left out.
    `conditions` are the verdicts on those that were asked, by name, as JSON values;
    `memory` is what a call takes, empty where that was not asked. `seconds_of` says where
    the seconds went, those of a timed workload its own `timing`.
    """

    solution: str
    author: str
    definition: str
    op_type: str
    path: str
    verdict: str
    reason: str = ""
    case: str = ""
    cases: Sequence[CaseVerdict] = ()
    notes: Sequence[str] = ()
    seconds: float = 0.0
    conditions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)
    seconds_of: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_fine(self) -> bool:
        """Return whether it passed, or could not be judged here."""
        return self.verdict in (PASSED, SKIPPED)

    @property
    def is_judged(self) -> bool:
        """Return whether there is a verdict on it, or it needs another machine."""
        return self.verdict not in (JUDGE_ERROR, INVALID)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> SolutionVerdict:
        """Return the verdict of JSON values. Raises KeyError, TypeError."""
        cases = [CaseVerdict(**case) for case in value["cases"]]
        return cls(**{**value, "cases": cases, "notes": tuple(value["notes"])})


def worst(cases: Sequence[CaseVerdict]) -> CaseVerdict:
    """Return the first of the cases with the worst verdict."""
    return max(cases, key=lambda case: ORDER.index(case.verdict))
