"""Time a solution in several starts: each has new processes of all that is timed.

The work of a process has an offset for as long as it lives (`clock/offsets.py`), so that
only other processes show it. Each start builds the solution again, in new namespaces and with
new files, so that nothing of an earlier start is left to it. The rivals and the process of
empty calls are new as well. Starts come one after the other: while one is timed, the
processes of later ones have ended their imports and wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from generator.evaluation.clock.offsets import together
from generator.evaluation.rounds import EvaluationRounds, Round
from generator.evaluation.seconds_of import SecondsOf
from generator.evaluation.session import Session
from generator.evaluation.timing import (
    Field,
    fractions_of,
    layouts_of,
    timed,
    timed_rounds,
)
from generator.evaluation.verdict import PASSED, CaseVerdict, Refused, worst
from generator.execution.cores import usable_cores

# one of so many starts may be disturbed
_OF_UNTIMED = 4
# starts whose processes import torch and kernels at once, and the cores that each needs
_AHEAD, _CORES = 8, 2


class Starts:
    """The timing of one solution in `count` starts.

    `session` is the one that was judged, and afterwards that of the last start: who gives
    it closes it. `reopens` returns one in which the solution is built anew, whose calls
    have `budget` seconds; `fields` starts rivals, and `secrets` seeds the values and the
    order of a further start.
    """

    def __init__(
        self,
        count: int,
        session: Session,
        reopens: Callable[[], Session],
        budget: float,
        fields: Callable[[], Field],
        secrets: Callable[[], int],
    ) -> None:
        self._count, self.session = count, session
        self._reopens, self._budget = reopens, budget
        self._fields, self._secrets = fields, secrets
        self._ahead: list[Field] = []
        self._most_untimed = count // _OF_UNTIMED

    def timed(
        self,
        asked: EvaluationRounds,
        cases: Sequence[CaseVerdict],
        others: Mapping[str, Round],
        passes_outputs: bool,
        secret: int,
        rivals: Field,
        notes: list[str],
        seconds: SecondsOf,
    ) -> list[CaseVerdict]:
        """Return the verdicts with the times of all starts, as `timing.timed` does of one.

        `rivals` are those of the first start; of several the next closes them. A workload
        may be without times in one start of four, by a disturbance; in more a solution
        would choose which of its starts count. What is refused in one start is refused.
        """
        of_cases: dict[str, list[CaseVerdict]] = {case.case: [] for case in cases}
        left, field = list(cases), rivals
        is_timed = timed_rounds(asked)
        rivals.begin(layouts_of(asked))
        seconds.lap("rivals")
        try:
            for number in range(self._count):
                if number:
                    field.close()
                    try:
                        field = self._restarted(number, asked, seconds)
                    except Refused as refused:
                        one = CaseVerdict("build", refused.verdict, refused.reason)
                        return [self._of_start(number, one)]
                    secret = self._secrets()
                reasons: list[str] = []
                about = (self.session, asked, left, others, passes_outputs, secret)
                times = timed(
                    *about,
                    field,
                    reasons,
                    is_first=number == 0,
                    is_last=number + 1 == self._count,
                )
                seconds.lap("timing")
                notes += [self._where(number) + note for note in reasons]
                if worst(times).verdict != PASSED:
                    wrong = {t.case: self._of_start(number, t) for t in times}
                    return [wrong.get(case.case, case) for case in cases]
                for one in times:
                    of_cases[one.case].append(one)
                left = [
                    replace(one, timing=None)
                    for one in times
                    if one.case in is_timed
                    and number + 1 - _timed(of_cases[one.case]) <= self._most_untimed
                ]
                if not left or asked.subject.op.only_moves:
                    break
        finally:
            for waiting in self._ahead:
                waiting.close()
            if field is not rivals:
                field.close()
        device = rivals.device
        return [self._together(asked, c, of_cases[c.case], device) for c in cases]

    def _restarted(
        self, number: int, asked: EvaluationRounds, seconds: SecondsOf
    ) -> Field:
        """Start all processes anew; return the rivals. Raises Refused where no build is."""
        is_new = not self._ahead
        if is_new:
            cores = max(usable_cores() // _CORES, 1)
            for _ in range(min(self._count - number, _AHEAD, cores)):
                self._ahead.append(self._fields())
        self.session.close()
        reference = self._ahead[0].reference
        if reference is not None:
            reference.close()
            reference.prepare()
        self.session = self._reopens()
        self.session.allow(self._budget)
        seconds.lap("build")
        if is_new:
            # none goes on with its imports while another one is timed
            layouts = layouts_of(asked)
            for one in self._ahead:
                one.begin(layouts)
        seconds.lap("rivals")
        return self._ahead.pop(0)

    def _together(
        self,
        asked: EvaluationRounds,
        case: CaseVerdict,
        times: Sequence[CaseVerdict],
        device: str,
    ) -> CaseVerdict:
        """Return the verdict on a case with the figures of all its starts, if it has them."""
        timings = [one.timing for one in times if one.timing is not None]
        if len(timings) < self._count - self._most_untimed:
            return case
        timing: dict[str, Any] = together(timings)
        if self._count > 1:
            timing["starts_untimed"] = self._count - len(timings)
            spent: Counter[str] = Counter()
            for one in timings:
                spent.update(one["seconds_of"])
            timing["seconds_of"] = {part: round(s, 3) for part, s in spent.items()}
            of = timed_rounds(asked)[case.case]
            timing |= fractions_of(of, timing["latency_ms"], device)
        return replace(case, timing=timing)

    def _of_start(self, number: int, case: CaseVerdict) -> CaseVerdict:
        """Return a verdict that says in which start it was; without times if it passed."""
        if case.verdict == PASSED:
            return replace(case, timing=case.timing if self._count == 1 else None)
        return replace(case, reason=self._where(number) + case.reason)

    def _where(self, number: int) -> str:
        return f"start {number + 1}: " if self._count > 1 else ""


def _timed(of_case: Sequence[CaseVerdict]) -> int:
    return sum(one.timing is not None for one in of_case)
