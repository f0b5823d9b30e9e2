"""Figures are without what an empty call takes, and never less than can be told apart."""

from __future__ import annotations

from typing import Any

import pytest

from generator.evaluation.clock.contender import (
    REFERENCE,
    Contender,
    EmptyCalls,
    fastest,
    may_be_faster,
    timing_of,
)
from generator.evaluation.clock.session_result import Untimed
from generator.evaluation.verdict import REWARD_HACK, Refused


@pytest.fixture
def zero() -> EmptyCalls:
    found = EmptyCalls()
    for number in range(40):
        found.add(False, 0.300 + 0.001 * (number % 5))
        found.add(True, 0.400 + 0.010 * (number % 5))
    return found


def one(name: str, raw: float, *, waits: bool = False, **more: Any) -> Contender:
    made = Contender(name, None, 1, waits, **more)  # type: ignore[arg-type]
    made.raw = [(waits, raw + 0.0001 * (n % 3)) for n in range(30)]
    made.host = [0.05] * 30
    return made


def test_empty_calls_are_taken_off_by_how_they_wait(zero: EmptyCalls) -> None:
    assert zero.of(False) == pytest.approx(0.302)
    assert zero.latency(one("", 0.352)) == pytest.approx(0.0501)
    assert zero.latency(one("", 1.42, waits=True)) == pytest.approx(1.0001)


def test_a_tiny_kernel_is_not_taken_off_anybodys_time(zero: EmptyCalls) -> None:
    for number in range(40):
        zero.add_twice(0.3015 + 0.001 * (number % 5))
    assert zero.kernel() == pytest.approx(0.0015)
    # what takes as long as an empty call did one kernel's work
    assert zero.of(False) == pytest.approx(0.3005)
    assert zero.of(True) == pytest.approx(0.4185)
    timing = timing_of(one("", 0.352), [], zero)
    assert timing["latency_ms"] == pytest.approx(0.0516)
    assert timing["kernel_ms"] == pytest.approx(0.0015)


def test_nothing_is_faster_than_the_resolution(zero: EmptyCalls) -> None:
    timing = timing_of(one("", 0.2), [], zero)
    assert timing["latency_ms"] == timing["resolution_ms"] == pytest.approx(0.002)
    assert not timing["resolved"]
    assert "speedup_factor" not in timing


def test_speedups_are_over_the_reference_and_the_fastest_kernel(
    zero: EmptyCalls,
) -> None:
    kernel = one("flashinfer/fa2", 0.402, plans=[0.03] * 9)
    rivals = [one(REFERENCE, 0.702), one("pytorch/slow", 0.502), kernel]
    timing = timing_of(one("", 0.352), rivals, zero)
    assert timing["speedup_factor"] == pytest.approx(8.0, rel=0.01)
    assert timing["production"] == "flashinfer/fa2"
    assert timing["speedup_over_production"] == pytest.approx(2.0, rel=0.01)
    assert timing["production_plan_ms"] == pytest.approx(0.03)
    assert timing["production_run_ms"] == pytest.approx(0.0701)
    assert timing["resolved"]
    assert timing["settled"]
    assert set(timing["rivals"]) == {REFERENCE, "pytorch/slow", "flashinfer/fa2"}


def test_rivals_without_a_figure_are_none(zero: EmptyCalls) -> None:
    silent = Contender("pytorch/broken", None, 1)  # type: ignore[arg-type]
    assert fastest([silent, one(REFERENCE, 0.4)], zero) is None


def test_who_launched_nothing_is_refused_and_who_was_cut_has_no_times(
    zero: EmptyCalls,
) -> None:
    solution = Contender("", None, 1)  # type: ignore[arg-type]
    with pytest.raises(Untimed, match="took longer"):
        timing_of(solution, [], zero)
    solution.unturned = 1
    with pytest.raises(Refused, match="launched nothing") as refused:
        timing_of(solution, [], zero)
    assert refused.value.verdict == REWARD_HACK


@pytest.mark.parametrize(
    ("long", "longs", "figures", "waits"),
    [
        (3, 3, 30, True),
        (1, 3, 5, False),
        (1, 4, 20, False),
        # two of three, never three in a row: the others would be a choice
        (2, 20, 10, True),
    ],
)
def test_who_is_often_long_is_waited_for(
    long: int, longs: int, figures: int, waits: bool
) -> None:
    contender = one("", 0.352, long=long, longs=longs)
    del contender.raw[figures:]
    assert contender.is_often_long is waits
    contender.begin_anew(waits=True)
    assert contender.waits
    assert not contender.raw
    assert not contender.is_often_long


@pytest.mark.parametrize(
    ("raw", "count", "may"),
    [(0.352, 30, True), (0.35205, 30, True), (0.36, 30, False), (0.36, 10, True)],
)
def test_a_second_kernel_is_called_while_it_may_be_the_fastest(
    zero: EmptyCalls, raw: float, count: int, may: bool
) -> None:
    second = one("b", raw)
    del second.raw[count:]
    assert may_be_faster(second, one("a", 0.352), zero) is may
