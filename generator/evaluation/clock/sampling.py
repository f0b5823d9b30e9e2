"""When a median is known well enough, and which of many calls are judged."""

from __future__ import annotations

import math
import random
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

LEAST = 20
WANTED = 0.01
"""The half width of a settled median's 95 % interval, as a share of it."""
OF_RATIO, OF_UNRESOLVED = 0.004, 0.02
"""The standard error of a ratio, at which to stop. Equal works then differed by 1.8 % at
most in 4,800 simulated sessions. Of short ones it is a tenth of a microsecond, and
processes of two runs differ by more (docs/measurements.md)."""
_NEAR_MS = 1e-3

Value = TypeVar("Value")


def middle(figures: Sequence[float]) -> float:
    """Return the mean of figures, each moved to within a microsecond of their median.

    Of figures with a deviation of half a microsecond its error is four fifths of the
    median's (one step to Huber's estimate). What is fast in less than half of the calls
    moves the median to another honest figure, and gains less than half a microsecond beside
    that. In milliseconds; raises ValueError without figures.
    """
    moved, _ = _moved(figures)
    return math.fsum(moved) / len(moved)


def error_of_ratio(*samples: Sequence[float]) -> float:
    """Return the standard error of the ratio of two middles, or of one, as a share of it.

    Of samples that know nothing of each other; infinite below LEAST figures.
    """
    share = 0.0
    for figures in samples:
        value = middle(figures) if len(figures) >= LEAST else 0.0
        if value <= 0.0:
            return math.inf
        share = math.hypot(share, error_of_middle(figures) / value)
    return share


def error_of_middle(figures: Sequence[float]) -> float:
    """Return the standard error of a middle; infinite of a single figure."""
    if len(figures) < 2:
        return math.inf
    moved, left = _moved(figures)
    value = math.fsum(moved) / len(moved)
    # Huber's: the deviation of what was moved, over the part that was left
    off = math.sqrt(math.fsum((f - value) ** 2 for f in moved) / len(moved))
    return off * math.sqrt(len(moved)) / left


def _moved(figures: Sequence[float]) -> tuple[list[float], int]:
    """Return figures within _NEAR_MS of their median, and how many of them lay there."""
    if not figures:
        raise ValueError("no figures")
    ordered, median = sorted(figures), statistics.median(figures)
    low, high = median - _NEAR_MS, median + _NEAR_MS
    begin, end = bisect_left(ordered, low), bisect_right(ordered, high)
    ends = [low] * begin, [high] * (len(ordered) - end)
    return [*ends[0], *ordered[begin:end], *ends[1]], max(end - begin, 1)


def median_interval(figures: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the median, by ranks: no law of the figures is assumed.

    The number of figures below the median is binomial; its normal approximation gives
    the ranks n/2 ± 0.98·√n. Raises ValueError without figures.
    """
    if not figures:
        raise ValueError("no figures")
    ordered, count = sorted(figures), len(figures)
    half = 0.98 * math.sqrt(count)
    low = max(math.floor(count / 2 - half), 0)
    high = min(math.ceil(count / 2 + half), count - 1)
    return ordered[low], ordered[high]


def is_settled(figures: Sequence[float]) -> bool:
    """Return whether a median is known to within WANTED of it, from LEAST figures or more."""
    if len(figures) < LEAST:
        return False
    low, high = median_interval(figures)
    median = statistics.median(figures)
    return median > 0.0 and (high - low) / 2 / median <= WANTED


def spread(figures: Sequence[float]) -> float:
    """Return the range between the quartiles; 0 of a single figure."""
    if len(figures) < 2:
        return 0.0
    low, _, high = statistics.quantiles(figures, n=4)
    return high - low


@dataclass
class Reservoir(Generic[Value]):
    """A uniform sample of `count` of all values that come.

    Whether one is kept is drawn when it is there, and may be taken back by a later one:
    a call is judged or not by what is drawn after all of them (Vitter's algorithm R).
    """

    count: int
    draw: random.Random
    kept: list[Value] = field(default_factory=list)
    seen: int = 0

    def add(self, value: Value) -> None:
        """Keep a value, in place of another one or not at all."""
        self.seen += 1
        if len(self.kept) < self.count:
            self.kept.append(value)
            return
        place = self.draw.randrange(self.seen)
        if place < self.count:
            self.kept[place] = value
