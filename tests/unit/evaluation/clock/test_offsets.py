"""Figures of several starts, and the error that a process's own offset adds to each."""

from __future__ import annotations

import math
import random
import statistics
from typing import Any

import pytest

from generator.evaluation.clock.offsets import (
    EMPTY_OFFSET_MS,
    OFFSET_MS,
    error_of_one,
    error_of_one_ratio,
    student,
    together,
)

KERNEL, SLOWER = "flashinfer", "pytorch/cublas"


def test_student_is_that_of_tables() -> None:
    known = {4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 11: 2.201, 30: 2.042}
    for freedom, width in known.items():
        assert student(freedom) == pytest.approx(width, rel=0.003)


class Machine:
    """Simulated starts: each process has an offset, and calls have noise."""

    def __init__(
        self, seed: int, offset: float = OFFSET_MS, empty: float = EMPTY_OFFSET_MS
    ) -> None:
        self._draw = random.Random(seed)
        self._offset, self._empty = offset, empty

    def start(self, milliseconds: float, **rivals: float) -> dict[str, Any]:
        """Return what a session says of one start, as `contender.timing_of` does."""
        gauss = self._draw.gauss
        zero, within = self._empty * gauss(0, 1), 1e-4

        def time(own: float) -> float:
            return own + self._offset * gauss(0, 1) + within * gauss(0, 1) - zero

        latency = time(milliseconds)
        others = {name.replace("_", "/"): time(own) for name, own in rivals.items()}
        timing = {
            "latency_ms": latency,
            "error_ms": error_of_one(within),
            "spread_ms": 0.7e-3,
            "iterations": 60,
            "settled": True,
            "host_ms": 0.1,
            "empty_ms": 0.28,
            "kernel_ms": 3e-3,
            "resolution_ms": 2e-3,
            "resolved": True,
            "void": 1,
            "rivals": others,
            "fresh": True,
        }
        kernels = [name for name in others if name != "reference"]
        for name in kernels:
            timing |= self._over(name, min(kernels, key=others.__getitem__), timing)
        if "reference" in others:
            other = others["reference"]
            timing["reference_latency_ms"] = other
            timing["speedup_factor"] = other / latency
            error = error_of_one_ratio((other, within), (latency, within))
            timing["speedup_error"] = error
        return timing

    def _over(self, name: str, best: str, timing: dict[str, Any]) -> dict[str, Any]:
        if name != best:
            return {}
        other, latency = timing["rivals"][name], timing["latency_ms"]
        error = error_of_one_ratio((other, 1e-4), (latency, 1e-4))
        return {
            "production": name,
            "production_latency_ms": other,
            "production_spread_ms": 0.7e-3,
            "production_settled": True,
            "speedup_over_production": other / latency,
            "speedup_over_production_error": error,
        }


def held(figures: list[dict[str, Any]], name: str, error: str, true: float) -> float:
    """Return in which share the interval holds the true figure."""
    return statistics.fmean(abs(f[name] - true) <= f[error] for f in figures)


@pytest.mark.parametrize("starts", [1, 2, 3, 8])
@pytest.mark.parametrize("milliseconds", [0.013, 0.025, 0.2])
@pytest.mark.parametrize(("offset", "least"), [(0.5, 0.97), (1.0, 0.93), (1.5, 0.85)])
def test_interval_holds_equal_work(
    starts: int, milliseconds: float, offset: float, least: float
) -> None:
    machine = Machine(starts, offset * OFFSET_MS, offset * EMPTY_OFFSET_MS)
    sessions = [
        together(
            [
                machine.start(milliseconds, flashinfer=milliseconds)
                for _ in range(starts)
            ]
        )
        for _ in range(1000)
    ]
    assert held(sessions, "latency_ms", "error_ms", milliseconds) > least
    over = "speedup_over_production"
    assert held(sessions, over, f"{over}_error", 1.0) > least


@pytest.mark.parametrize("starts", [1, 2, 8])
def test_interval_holds_95_percent_on_machines_as_they_were_measured(
    starts: int,
) -> None:
    draw, over = random.Random(starts), "speedup_over_production"
    sessions = []
    for number in range(3000):
        # four starts would know a machine's own deviation as well as it is known
        wide = math.sqrt(4.0 / sum(draw.gauss(0, 1) ** 2 for _ in range(4)))
        machine = Machine(number, wide * OFFSET_MS, wide * EMPTY_OFFSET_MS)
        timings = [machine.start(0.025, flashinfer=0.025) for _ in range(starts)]
        sessions.append(together(timings))
    assert held(sessions, "latency_ms", "error_ms", 0.025) == pytest.approx(
        0.95, abs=0.02
    )
    assert held(sessions, over, f"{over}_error", 1.0) == pytest.approx(0.95, abs=0.02)


def test_eight_starts_know_a_product_of_24_microseconds_to_two_percent() -> None:
    machine = Machine(1)
    over = "speedup_over_production"
    one = [machine.start(0.024, flashinfer=0.024) for _ in range(800)]
    eight = [together(one[n : n + 8]) for n in range(0, 800, 8)]
    # what the clock alone is off by is more than the two percent that are asked for
    assert sum(abs(f[over] - 1.0) > 0.02 for f in one) > 0.2 * len(one)
    assert sum(abs(f[over] - 1.0) > 0.02 for f in eight) <= 1
    assert statistics.fmean(f[f"{over}_error"] for f in eight) < 0.018
    assert not one[0][f"{over}_error"] < 0.04


def test_a_speedup_is_the_ratio_of_the_latencies() -> None:
    machine = Machine(2, offset=2e-3)
    timings = [machine.start(0.004, reference=0.03) for _ in range(5)]
    timing = together(timings)
    ratio = timing["reference_latency_ms"] / timing["latency_ms"]
    assert timing["speedup_factor"] == pytest.approx(ratio)
    assert "production" not in timing


def test_one_start_is_as_it_was() -> None:
    timing = Machine(3).start(0.02, flashinfer=0.02)
    assert together([timing]) == {**timing, "starts": 1}


def test_who_is_fast_in_less_than_half_of_its_starts_gains_little() -> None:
    machine = Machine(4, 1e-5, 1e-5)
    honest = [machine.start(0.025, flashinfer=0.025) for _ in range(8)]
    usual = together(honest)
    over = "speedup_over_production"
    for fast in (1, 2, 3):
        lying = [machine.start(0.005, flashinfer=0.025) for _ in range(fast)]
        timing = together([*lying, *honest[fast:]])
        # a start of four is left out; of a third one 1.5 µs count, in a mean of four
        most = 1e-4 if fast < 3 else 5e-4
        assert timing["latency_ms"] > usual["latency_ms"] - most
        assert timing[over] < usual[over] + most / 0.025
        assert timing["outliers"] == fast
    # and nobody takes its figure for a known one
    assert timing["error_ms"] > 4 * usual["error_ms"]
    assert timing[f"{over}_error"] > 0.5


@pytest.mark.parametrize("bad", [0.042, 0.5])
@pytest.mark.parametrize("which", ["the solution", "the kernel"])
def test_one_bad_start_of_eight_costs_nothing(bad: float, which: str) -> None:
    machine = Machine(5)
    starts = [machine.start(0.0243, flashinfer=0.0243) for _ in range(8)]
    usual = together(starts)
    # as an H100 had them: 42 beside 24 µs, and a ratio of 3.2
    own, other = (bad, 0.0243) if which == "the solution" else (0.0243, bad)
    timing = together([*starts[:7], machine.start(own, flashinfer=other)])
    for name in ("speedup_over_production", "latency_ms", "error_ms"):
        assert timing[name] == pytest.approx(usual[name], rel=0.02, abs=1.5e-4), name
    assert timing["speedup_over_production_error"] < 0.025
    assert timing["outliers"] == 1


def test_who_is_slow_in_bad_starts_gains_nothing_by_that() -> None:
    machine, gains = Machine(6), []
    for _ in range(500):
        starts = [machine.start(0.025, flashinfer=0.025) for _ in range(8)]
        starts.sort(key=lambda t: float(t["latency_ms"]))
        worse = [machine.start(0.06, flashinfer=0.025) for _ in range(2)]
        gains.append(
            together([*starts[:6], *worse])["latency_ms"]
            / together(starts)["latency_ms"]
        )
    assert min(gains) > 0.9999


def test_who_has_no_times_in_bad_starts_gains_less_than_the_error() -> None:
    machine, over = Machine(7), "speedup_over_production"
    gains, errors = [], []
    for _ in range(500):
        starts = [machine.start(0.025, flashinfer=0.025) for _ in range(8)]
        # of those whose own offset is worst, which it can only guess
        starts.sort(key=lambda t: float(t[over]), reverse=True)
        all_, hidden = together(starts), together(starts[:6])
        gains.append(hidden[over] - all_[over])
        errors.append(hidden[f"{over}_error"])
    assert statistics.fmean(gains) < 0.4 * statistics.fmean(errors)
    assert statistics.fmean(gains) < 0.007


def test_the_fastest_kernel_is_that_of_all_starts() -> None:
    machine = Machine(6, 2e-3)
    timings = [
        machine.start(0.03, flashinfer=0.0300, pytorch_cublas=0.0305) for _ in range(16)
    ]
    fastest = {t["production"] for t in timings}
    assert fastest == {KERNEL, SLOWER}
    timing = together(timings)
    name = timing["production"]
    assert timing["rivals"][name] == min(timing["rivals"].values())
    beside = timing["latency_ms"] * timing["speedup_over_production"]
    assert timing["production_latency_ms"] == beside


def test_who_is_no_rival_in_one_start_of_four_is_one() -> None:
    machine = Machine(7)
    timings = [machine.start(0.03, flashinfer=0.03, reference=0.2) for _ in range(3)]
    timing = together([machine.start(0.04), *timings])
    assert set(timing["rivals"]) == {KERNEL, "reference"}
    assert timing["starts"] == 4
    # its ratio is that of the starts in which it was
    alone = together(timings)
    names = "speedup_over_production", "speedup_factor", "speedup_error"
    for name in names:
        assert timing[name] == pytest.approx(alone[name])
    ratio = timing["reference_latency_ms"] / timing["latency_ms"]
    assert timing["speedup_factor"] == pytest.approx(ratio)


def test_who_is_no_rival_in_more_starts_is_none() -> None:
    machine = Machine(7)
    timings = [machine.start(0.03, flashinfer=0.03, reference=0.2) for _ in range(2)]
    without = machine.start(0.03)
    timing = together([*timings, without])
    assert timing["rivals"] == {}
    gone = ("production", "speedup", "reference")
    assert not [name for name in timing if name.startswith(gone)]
    # nor where it is new in a later one
    assert together([without, *timings])["rivals"] == {}


def test_starts_resolve_what_one_does_not() -> None:
    machine = Machine(8)
    starts = [machine.start(0.006, flashinfer=0.006) for _ in range(8)]
    timing = together(starts)
    assert timing["resolution_ms"] < starts[0]["resolution_ms"]
    assert timing["resolved"]
    noisy = Machine(8, offset=3e-3)
    assert not together([noisy.start(0.006) for _ in range(8)])["resolved"]


def test_what_was_counted_is_of_all_starts() -> None:
    machine = Machine(9)
    about = {
        "clocks_mhz": {"sm": 1980, "sm_least": 1500, "memory": 2619},
        "power_watts": 300.0,
        "throttled": 2,
        "throttle_reasons": ["sw power cap"],
    }
    timings = [machine.start(0.02) | about, machine.start(0.02)]
    timings[0]["settled"] = False
    timing = together(timings)
    assert (timing["iterations"], timing["void"], timing["throttled"]) == (120, 2, 2)
    assert not timing["settled"]
    assert timing["throttle_reasons"] == ["sw power cap"]
    assert [one["latency_ms"] for one in timing["by_start"]] == [
        one["latency_ms"] for one in timings
    ]
