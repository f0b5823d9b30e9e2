"""The result of one definition's tests over several seeds, reference unchanged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

# p-values up to this are counted: by chance one in a thousand is
LOW = 1e-3
# the probability that chance alone gives a definition more of them than are allowed
_RARE = 1e-6


@dataclass(frozen=True)
class Alarm:
    """A failure of a test on an unchanged reference.

    `test` is `test_metamorphic:<relation>` for a relation; `why` is the test's message.
    `raised` says that `run()` itself raised.
    """

    test: str
    case: str
    seed: int
    why: str
    raised: bool = False


@dataclass(frozen=True)
class SeedsResult:
    """The results of one definition's tests, reference unchanged.

    `seeds` are the first and the last; `tests` counts the tests that ran, `skipped` the
    others by reason. `statistical` comparisons have a p-value, `low` of them at most
    LOW; they fail below `significance`. `reduced` are the axes shorter than the
    definition's; `error` is why the tests did not run to the end.
    """

    definition: str
    op_type: str
    key: str
    seeds: tuple[int, int]
    tests: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    alarms: tuple[Alarm, ...] = ()
    statistical: int = 0
    low: int = 0
    significance: float = 0.0
    reduced: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    error: str = ""

    @property
    def asked(self) -> int:
        """Return how many tests ran."""
        return sum(self.tests.values())

    @property
    def low_by_chance(self) -> int:
        """Return the largest count of low p-values that chance explains."""
        return most_by_chance(self.statistical, LOW, _RARE)

    @property
    def is_low_too_often(self) -> bool:
        """Return whether more p-values are low than chance explains."""
        return self.low > self.low_by_chance

    @property
    def is_fine(self) -> bool:
        """Return whether tests ran to the end and none failed."""
        return bool(
            self.asked
            and not self.alarms
            and not self.error
            and not self.is_low_too_often
        )

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> SeedsResult:
        """Read the value of `as_dict`. Raises KeyError or TypeError for another value."""
        fields = {name: value[name] for name in cls.__dataclass_fields__}
        first, last = value["seeds"]
        alarms = tuple(Alarm(**alarm) for alarm in value["alarms"])
        return cls(**{**fields, "seeds": (first, last), "alarms": alarms})


def most_by_chance(count: int, probability: float, rare: float) -> int:
    """Return the smallest k with P(X > k) ≤ `rare`, X ~ Binomial(count, probability).

    Sums the terms from the largest k down, so that none is lost by rounding.
    """
    odds = math.log(probability) - math.log1p(-probability)
    log_choose, above = 0.0, 0.0
    logs = []
    for k in range(count + 1):
        logs.append(log_choose + k * odds + count * math.log1p(-probability))
        log_choose += math.log(count - k) - math.log(k + 1) if k < count else 0.0
    for k in range(count, -1, -1):
        above += math.exp(logs[k])
        if above > rare:
            return k
    return 0
