"""The calls of a session that are judged: some by lot, and those that look odd."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from generator.evaluation.clock.outputs import distance
from generator.evaluation.clock.sampling import Reservoir
from generator.evaluation.clock.session_result import CandidateCall

# of calls that no rival made as well, more are judged
_DRAWN, _ODD, _UNSEEN = 3, 2, 3
# the device did not turn to who launched nothing, and seldom to others
_SELDOM = 0.02


class CallsToJudge:
    """The calls of a solution that will be judged; `draw` is secret."""

    def __init__(self, draw: random.Random) -> None:
        self._drawn: Reservoir[CandidateCall] = Reservoir(_DRAWN, draw)
        self._unseen: Reservoir[CandidateCall] = Reservoir(_UNSEEN, draw)
        self._odd: list[tuple[float, CandidateCall]] = []
        self._aside: list[CandidateCall] = []

    def add(self, call: CandidateCall, others: Sequence[Sequence[Any]]) -> None:
        """Take a call, and what rivals returned for the same values.

        The two calls that are farthest from their nearest rival are kept: the nearest
        counts, since one may be wrong or late. No verdict rests on that.
        """
        self._drawn.add(call)
        if not others:
            self._unseen.add(call)
            return
        far = min(
            max(map(distance, call.outputs, outputs), default=0.0) for outputs in others
        )
        self._odd.append((far, call))
        self._odd.sort(key=lambda one: -one[0])
        del self._odd[_ODD:]

    def set_aside(self, call: CandidateCall) -> None:
        """Take a call that the device did not turn to."""
        self._aside = [*self._aside, call][:_DRAWN]

    def to_judge(self, timed: int, unturned: int) -> list[CandidateCall]:
        """Return the calls to be judged; those without a turn unless they are seldom."""
        every = [*self._drawn.kept, *self._unseen.kept, *(k for _, k in self._odd)]
        if unturned > max(1, _SELDOM * timed):
            every += self._aside
        return list({id(call): call for call in every}.values())
