"""The times of calls before their clock starts, by which another one's work is noticed."""

from __future__ import annotations

import statistics
from collections import Counter

from generator.evaluation.clock.timed_calls import CallTimes

# who has the device keeps it until its time slice of 2.4 ms ends; Python's own pauses are
# shorter than the first
_LIMITS_MS = {
    "their start": 1.0,
    # others who come between cost two changes of context, 0.28 ms, clocks that rise 0.15 ms
    "the hold": 0.25,
    # one change of context takes 0.14 ms, and who comes between costs two
    "the turn to the judge": 0.1,
    # it also shows who uses the GPU's memory beside it, and would slow down rivals: the
    # driver, which clears what was freed. One in a thousand quiet calls is 0.02 ms longer
    "the writing": 0.03,
}
_LIMIT_SHARE = 0.1
_RECENT = 64


class QuietCalls:
    """The usual times before the clock starts, of calls in which nobody else works."""

    def __init__(self) -> None:
        self._usual: list[tuple[float, ...]] = []
        self._longer: Counter[str] = Counter()

    def add(self, timed: CallTimes) -> None:
        """Keep the times of a call with nothing but a tiny kernel."""
        took = zip(_before_the_clock(timed), _asked(timed), strict=True)
        self._usual.append(tuple(ms / asked for ms, asked in took))

    def is_busy(self, timed: CallTimes) -> bool:
        """Return whether others used the device before the values were there.

        They had nothing to work on: it is work of before, which delays whom it does not
        concern.
        """
        shares = map(statistics.median, zip(*self._usual[-_RECENT:], strict=True))
        # its clocks say how long a card takes for the cycles of a hold
        usual = [s * a for s, a in zip(shares, _asked(timed), strict=True)]
        took = zip(_LIMITS_MS.items(), _before_the_clock(timed), usual, strict=True)
        longer = [
            name
            for (name, most), ms, quiet in took
            if ms > quiet + max(most, _LIMIT_SHARE * quiet)
        ]
        self._longer.update(longer)
        return bool(longer)

    def why(self) -> str:
        """Return which times were longer than usual, the most frequent one first."""
        return ", ".join(name for name, _ in self._longer.most_common())


def _before_the_clock(timed: CallTimes) -> tuple[float, ...]:
    return timed.delayed, timed.held, timed.turning, timed.writing


def _asked(timed: CallTimes) -> tuple[float, ...]:
    """Return what each of these times grows with: the hold with what was asked."""
    return 1.0, timed.asked, 1.0, 1.0
