"""For how long the device is held for each contender: until its launches are done.

A launch that comes after the clock's start adds the host's delay to the figure, and how long
launches take changes within a session: a scheduler moves a process, a cache is lost.
"""

from __future__ import annotations

from collections.abc import Iterable

from generator.evaluation.clock.contender import Contender
from generator.evaluation.clock.timed_calls import CallTimes, TimedCalls

# launches take longer now and then
_MARGIN = 1.3
# by which a hold grows at least and at most
_LEAST, _MOST = 1.25, 2.0


class Holds:
    """Fit the holds of a session to the warm-up, and to what comes later."""

    def __init__(self, calls: TimedCalls) -> None:
        self._calls, self._is_fitted = calls, False

    def fit(self, everybody: Iterable[Contender]) -> None:
        """Set each contender's hold to what its launches took in the warm-up.

        The second longest time counts, since one may be an accident. Of who waits for the
        device the time is the device's as well.
        """
        for one in everybody:
            if one.host and not one.waits:
                launches = sorted(one.host)[-2:][0]
                one.hold = self._calls.hold_for(_MARGIN * launches)
        self._is_fitted = True

    def grow(self, one: Contender, timed: CallTimes) -> bool:
        """Return whether a call was launched late, and the device is held longer from now on.

        The figure of such a call is dropped. A hold grows by a quarter at least, and no
        further than a time slice allows: so a handful are, whoever chooses when to be
        late. What is late after that counts.
        """
        is_late = self._is_fitted and not one.waits and timed.after > 0.0
        if not is_late or self._calls.device != "cuda":
            return False
        wanted = max(_MARGIN * timed.host, _LEAST * one.hold)
        hold = self._calls.hold_for(min(wanted, _MOST * one.hold))
        grows, one.hold = hold > one.hold, max(hold, one.hold)
        return grows
