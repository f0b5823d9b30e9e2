"""Context of a condition: judged calls, cases, and the solution's process."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from generator.evaluation.arena import Slices
from generator.evaluation.conditions.condition import BROKEN, UNSUPPORTED, Condition
from generator.evaluation.draws import SECRETS, draws_of
from generator.evaluation.judge import Judge
from generator.evaluation.rounds import EvaluationRounds, Round
from generator.evaluation.session import Session
from generator.evaluation.verdict import Refused
from kernel_judge.inputs.memory import tensor_bytes
from kernel_judge.inputs.trial import Trial
from kernel_judge.skipping import Skip

# weights of a projection in bfloat16; the judge writes all of it for each call
_MOST_BYTES = {"cpu": 64 << 20, "cuda": 256 << 20}
# rounds of a case whose values and expected outputs are kept for the next condition
_KEPT, _KEPT_BYTES = 4, 64 << 20


class ConditionSkipped(Exception):
    """Raised where a condition does not apply to a definition, or not here."""


@dataclass
class Asking:
    """One solution, as conditions ask it.

    `reopened` returns a session in which the solution is built anew: a call may have
    ended the last one. `secret` seeds values and choices. `judges` makes what compares
    its answers. `has_gpu_alone` says that what the driver lacks is this solution's.
    `checks` raises Skip for inputs that a production kernel does not take.
    """

    session: Session
    asked: EvaluationRounds
    device: torch.device
    passes_outputs: bool
    secret: int
    reopened: Callable[[], Session]
    soak_seconds: float
    judges: Callable[..., Judge] = Judge
    has_gpu_alone: bool = True
    checks: Callable[[Trial], None] | None = None
    draw: random.Random = field(init=False)
    _known: dict[str, list[Round]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.draw = draws_of(self.secret, "conditions")

    @property
    def judge(self) -> Judge:
        """Return what compares the answers of the session."""
        about = (self.session, self.asked, self.device, self.passes_outputs)
        return self.judges(*about, self.draw.randrange(SECRETS))

    def called(
        self,
        one: Round,
        *,
        slices: Slices | None = None,
        under: str = "",
        slot: int = 0,
        seed: int | None = None,
    ) -> tuple[Any, ...]:
        """Return the answer to a round, which is right. Raises Refused.

        Of a law one call proves nothing: its shapes are looked at alone.
        """
        judge = self.judge
        how: dict[str, Any] = {"slices": slices, "under": under, "seed": seed}
        actual = judge.called(one.inputs, one.filled, slot, one.case.axes, **how)
        if one.calls() == 1:
            judge.compared("", one, actual)
        return actual

    def cases(self, count: int) -> list[Round]:
        """Return cases drawn of those that have elements and are not large.

        All conditions have the same: their values and expected outputs are made once.
        Raises ConditionSkipped where there is none.
        """
        rounds = [of_case[0] for _, of_case in self.asked.rounds]
        small = [one for one in rounds if is_small(one, self.device)]
        if not small:
            limit = f"{_MOST_BYTES[self.device.type] >> 20} MiB"
            raise ConditionSkipped(
                f"each of its cases is empty, or larger than {limit}"
            )
        order = draws_of(self.secret, "cases")
        return order.sample(small, len(small))[:count]

    def small_cases(self, count: int) -> list[Round]:
        """Return those of all cases that have the fewest bytes. Raises ConditionSkipped."""
        small = self.cases(len(self.asked.rounds))
        small.sort(key=lambda one: tensor_bytes(one.subject.definition, one.case))
        return small[:count]

    def other(self, one: Round) -> Round:
        """Return a round of the same case with other values."""
        return replace(one, shift=self.draw.randrange(SECRETS))

    def others(self, one: Round, count: int) -> list[Round]:
        """Return rounds of the same case with other values, no two equal beside each other.

        At least one of them, by lot, was never asked; the others may have been, under
        another condition. So an answer that is kept by content is missed at least once.
        """
        known = self._known.setdefault(one.case.name, [])
        earlier = self.draw.sample(known, min(count - 1, len(known)))
        new = [self.other(one) for _ in range(count - len(earlier))]
        if tensor_bytes(one.subject.definition, one.case) <= _KEPT_BYTES:
            known += new
            del known[:-_KEPT]
        others = [*earlier, *new]
        self.draw.shuffle(others)
        return others

    def takes(self, trial: Trial) -> bool:
        """Return whether it is called with these inputs."""
        with suppress(Skip):
            if self.checks is not None:
                self.checks(trial)
            return True
        return False

    def verdict(self, refused: Refused, where: str = "") -> Condition:
        """Return what a refusal is under a condition.

        An error that it raises is its way to say no, if it can be called afterwards. A
        wrong answer is none, nor is a process that is no good any more.
        """
        reason = f"{where}: {refused.reason}" if where else refused.reason
        if not refused.is_raised:
            return Condition(BROKEN, f"{refused.verdict}: {reason}")
        if self.works():
            return Condition(UNSUPPORTED, reason)
        return Condition(BROKEN, f"{reason}; no call is right afterwards")

    def works(self) -> bool:
        """Return whether an ordinary call is answered rightly."""
        with suppress(Refused):
            self.called(self.cases(1)[0])
            return True
        return False

    def mend(self) -> None:
        """Build the solution in another process where this one is no good any more."""
        if not self.works():
            self.session.close()
            self.session = self.reopened()


def is_small(one: Round, device: torch.device) -> bool:
    """Return whether a round has elements, usual values of its own, and few enough bytes."""
    if one.workload is not None or one.values is not None or one.case.moved:
        return False
    if not all(one.case.axes.values()):
        return False
    return tensor_bytes(one.subject.definition, one.case) <= _MOST_BYTES[device.type]
