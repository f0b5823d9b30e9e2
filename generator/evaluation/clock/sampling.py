"""When a median is known well enough, and which of many calls are judged."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

LEAST = 20
WANTED = 0.01
"""The half width of a settled median's 95 % interval, as a share of it."""
OF_RATIO = 0.007
"""The same of the ratio of two, at which to stop: equal works differ by less than 2 %."""

Value = TypeVar("Value")


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


def is_settled(*samples: Sequence[float], within: float = WANTED) -> bool:
    """Return whether a median, or the ratio of two, is known to within a share of it.

    Errors of medians that know nothing of each other add as squares do. Of each sample
    there are LEAST figures or more.
    """
    apart = 0.0
    for figures in samples:
        if len(figures) < LEAST:
            return False
        low, high = median_interval(figures)
        middle = statistics.median(figures)
        if middle <= 0.0:
            return False
        apart = math.hypot(apart, (high - low) / 2 / middle)
    return apart <= within


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
