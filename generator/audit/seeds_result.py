"""What the tests said of one definition's unchanged reference over seeds, as a value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

# p-values this small are counted: chance alone makes one in a thousand
LOW = 1e-3
# and how rarely chance may make more of a definition's small than are allowed
_RARE = 1e-6


@dataclass(frozen=True)
class Alarm:
    """Tell which test was red in which case with which seed, and what it said.

    `test` is `test_metamorphic:<relation>` of a relation.
    """

    test: str
    case: str
    seed: int
    why: str


@dataclass(frozen=True)
class SeedsResult:
    """Tell what the tests said of one definition's unchanged reference.

    `seeds` are the first and the last one; `tests` counts what was asked by test, and
    `skipped` what was not, by reason. Of what was asked, `statistical` comparisons have
    a p-value, `low` of these one of at most LOW, and `significance` is what makes them
    red. `reduced` are the axes shorter than the definition's; `error` says why a
    definition could not be asked to the end.
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
        """Return how many tests were asked."""
        return sum(self.tests.values())

    @property
    def low_by_chance(self) -> int:
        """Return how many small p-values chance explains."""
        return most_by_chance(self.statistical, LOW, _RARE)

    @property
    def is_low_too_often(self) -> bool:
        """Return whether more p-values are small than chance explains."""
        return self.low > self.low_by_chance

    @property
    def is_fine(self) -> bool:
        """Return whether something was asked, and nothing was red."""
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
        """Read what `as_dict` gave. Raises KeyError, TypeError where it is not that."""
        fields = {name: value[name] for name in cls.__dataclass_fields__}
        first, last = value["seeds"]
        alarms = tuple(Alarm(**alarm) for alarm in value["alarms"])
        return cls(**{**fields, "seeds": (first, last), "alarms": alarms})


def most_by_chance(count: int, probability: float, rare: float) -> int:
    """Return the fewest k that a binomial variable exceeds no more often than `rare`.

    The terms are summed from the largest k on, so that none is lost beside 1.
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
