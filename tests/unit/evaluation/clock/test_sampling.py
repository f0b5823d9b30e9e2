"""The interval of a median is right, and every call may be judged."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter

import pytest

from generator.evaluation.clock.sampling import (
    LEAST,
    OF_RATIO,
    OF_UNRESOLVED,
    Reservoir,
    error_of_ratio,
    is_settled,
    median_interval,
    middle,
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


@pytest.mark.parametrize("noise", [0.25e-3, 0.56e-3, 0.8e-3])
def test_a_ratio_of_equal_works_is_within_two_percent(noise: float) -> None:
    # of 0.023 ms, as cuBLAS takes at few rows; now and then a call is late
    draw, ratios, turns = random.Random(4), [], []
    for _ in range(100):
        one: list[float] = []
        other: list[float] = []
        while error_of_ratio(one, other) > OF_RATIO:
            for figures in (one, other):
                late = 0.1 * draw.random() * (draw.random() < 0.02)
                figures.append(draw.gauss(0.023, noise) + late)
        ratios.append(middle(one) / middle(other))
        turns.append(len(one))
    assert max(abs(ratio - 1.0) for ratio in ratios) < 0.016
    assert statistics.stdev(ratios) < 1.15 * OF_RATIO
    # medians that are known as well take half as many again
    wanted = 2.2 * (noise / 0.023 / OF_RATIO) ** 2
    assert statistics.fmean(turns) == pytest.approx(max(wanted, LEAST), rel=0.2)


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


def short_figures(draw: random.Random, count: int) -> list[float]:
    """Return figures as short calls have on an H100: 4.4 µs, and now and then much more."""
    late = (draw.random() < 0.02 for _ in range(count))
    return [
        4.4e-3 + 0.5e-3 * draw.gauss(0.0, 1.0) + 0.1 * draw.random() * is_late
        for is_late in late
    ]


def test_middle_is_nearer_than_the_median() -> None:
    draw = random.Random(3)
    samples = [short_figures(draw, 60) for _ in range(2000)]
    off = [
        statistics.fmean((of(figures) - 4.4e-3) ** 2 for figures in samples)
        for of in (middle, statistics.median)
    ]
    # the variance of Huber's is two thirds of the median's
    assert off[0] < 0.8 * off[1]


@pytest.mark.parametrize("least", [0.0, 2e-3, 3.5e-3])
def test_middle_is_moved_little_by_less_than_half(least: float) -> None:
    draw = random.Random(4)
    honest = [4.4e-3 + 0.5e-3 * draw.gauss(0.0, 1.0) for _ in range(1000)]
    for share in (0.1, 0.3, 0.45):
        count = round(1000 * share)
        mixed = [least] * count + honest[count:]
        # the median alone is that of the honest ones at a lower rank
        rank = (0.5 - share) / (1.0 - share)
        lower = sorted(honest[count:])[int(rank * (1000 - count))]
        assert min(lower, middle(honest)) - 1e-3 * share <= middle(mixed)


def test_late_calls_hardly_move_the_middle() -> None:
    draw = random.Random(5)
    honest = [4.4e-3 + 0.5e-3 * draw.gauss(0.0, 1.0) for _ in range(1000)]
    late = [*honest[50:], *[0.15] * 50]
    assert middle(late) - middle(honest) < 0.15e-3


def test_no_figures_have_no_middle() -> None:
    with pytest.raises(ValueError, match="no figures"):
        middle([])


def test_error_of_a_ratio_is_what_ratios_differ_by() -> None:
    draw, ratios, errors = random.Random(6), [], []
    for _ in range(1500):
        one, two = short_figures(draw, 120), short_figures(draw, 120)
        ratios.append(middle(one) / middle(two))
        errors.append(error_of_ratio(one, two))
    assert statistics.fmean(errors) == pytest.approx(statistics.stdev(ratios), rel=0.1)


def test_short_calls_are_measured_until_their_ratio_is_known() -> None:
    draw, ratios, turns = random.Random(7), [], []
    for _ in range(300):
        one, two = short_figures(draw, 400), short_figures(draw, 400)
        count = LEAST
        while error_of_ratio(one[:count], two[:count]) > OF_UNRESOLVED:
            count += 5
        ratios.append(middle(one[:count]) / middle(two[:count]))
        turns.append(count)
    assert statistics.stdev(ratios) == pytest.approx(OF_UNRESOLVED, rel=0.15)
    assert 50 < statistics.median(turns) < 90


def test_error_of_few_figures_is_not_known() -> None:
    assert error_of_ratio([4e-3] * (LEAST - 1)) == math.inf
    assert error_of_ratio([0.0] * LEAST) == math.inf
    assert error_of_ratio([4e-3] * LEAST) == 0.0
