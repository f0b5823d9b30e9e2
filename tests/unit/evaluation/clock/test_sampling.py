"""The interval of a median is right, and every call may be judged."""

from __future__ import annotations

import random
import statistics
from collections import Counter

import pytest

from generator.evaluation.clock.sampling import (
    LEAST,
    OF_RATIO,
    Reservoir,
    is_settled,
    median_interval,
    spread,
)


@pytest.mark.parametrize("count", [20, 60, 200])
@pytest.mark.parametrize("law", ["normal", "skewed"])
def test_interval_holds_the_median_in_95_percent(count: int, law: str) -> None:
    draw, held, runs = random.Random(1), 0, 1500
    # the median of the exponential law is ln 2
    middle = 5.0 if law == "normal" else 0.6931
    for _ in range(runs):
        if law == "normal":
            figures = [draw.gauss(5.0, 1.0) for _ in range(count)]
        else:
            figures = [draw.expovariate(1.0) for _ in range(count)]
        low, high = median_interval(figures)
        assert low <= statistics.median(figures) <= high
        held += low <= middle <= high
    # 1500 runs tell 95 % to within 2 %
    assert held / runs > 0.93


def test_no_figures_have_no_interval() -> None:
    with pytest.raises(ValueError, match="no figures"):
        median_interval([])


def test_settled_when_the_interval_is_narrow() -> None:
    assert is_settled([1.0 + 0.001 * (n % 5) for n in range(LEAST)])
    assert not is_settled([1.0 + 0.1 * (n % 5) for n in range(LEAST)])
    assert not is_settled([1.0] * (LEAST - 1))
    assert not is_settled([0.0] * LEAST)


def test_a_ratio_of_equal_works_is_within_two_percent() -> None:
    draw, worst = random.Random(4), 0.0
    for noise in (0.01, 0.02, 0.03):
        for _ in range(100):
            one: list[float] = []
            other: list[float] = []
            while not is_settled(one, other, within=OF_RATIO):
                one.append(draw.gauss(1.0, noise))
                other.append(draw.gauss(1.0, noise))
            ratio = statistics.median(one) / statistics.median(other)
            worst = max(worst, abs(ratio - 1.0))
    # 0.022 where each is settled for itself
    assert worst < 0.018


def test_two_settled_medians_may_have_a_ratio_that_is_not() -> None:
    figures = [1.0 + 0.0018 * n for n in range(LEAST)]
    assert is_settled(figures)
    assert not is_settled(figures, figures)
    assert not is_settled(figures, [1.0] * (LEAST - 1))


def test_spread_is_between_the_quartiles() -> None:
    assert spread(range(1, 100)) == pytest.approx(50.0)
    assert spread([3.0]) == 0.0


def test_each_call_is_kept_as_often() -> None:
    counts: Counter[int] = Counter()
    for seed in range(3000):
        drawn: Reservoir[int] = Reservoir(3, random.Random(seed))
        for number in range(30):
            drawn.add(number)
        assert len(set(drawn.kept)) == 3
        counts.update(drawn.kept)
    # 300 are expected of each; five deviations
    assert all(abs(counts[n] - 300) < 90 for n in range(30))
