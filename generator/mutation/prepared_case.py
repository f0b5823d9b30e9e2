"""A case of an audit with inputs that are made once, and what caught a mutant in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernel_judge.definition import Case
from kernel_judge.inputs.trial import Inputs

# of the CPU for the reference's tests in a case
SLOW_SECONDS = 0.2


@dataclass(frozen=True)
class Catch:
    """The first test and case that caught a mutant, and the test's message.

    `raised` says that `run()` raised, which any test would have caught.
    """

    test: str
    case: str
    why: str
    raised: bool = False

    def __str__(self) -> str:
        return f"{self.test} in case {self.case}: {self.why}"


@dataclass
class PreparedCase:
    """A case with its inputs, and with an oracle that has its answer.

    `results` are the reference's, None if there is no oracle. `seconds` is what the
    reference's tests took, before them the oracle; `catches` is one more than the mutants
    caught in this case. It `is_compared` if the reference agrees with an oracle or a
    recording here, and `is_postponed` while the proof of that is left to a fork.
    """

    case: Case
    inputs: Inputs
    is_recorded: bool
    oracle: Callable[..., Any] | None
    has_answer: bool = False
    results: tuple[Any, ...] | None = None
    seconds: float = 0.0
    catches: int = 1
    is_compared: bool = False
    is_postponed: bool = False

    @property
    def is_slow(self) -> bool:
        """Return whether a mutant that is the reference elsewhere had better share a call."""
        return self.seconds > SLOW_SECONDS
