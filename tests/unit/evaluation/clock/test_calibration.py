"""Measured peaks are those of a card, kept with it, and none while it is busy."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from generator.evaluation.clock import calibration
from generator.evaluation.clock.calibration import (
    SHAPES,
    Run,
    Shape,
    kept_peak,
    measured_peak,
)
from generator.evaluation.clock.light import bound
from generator.ops.work import Work

COPY_SECONDS, SUM_SECONDS = 1e-3, 0.45e-3
RATE = 5e14
NAME = "GPU-1.json"


class FakeDevice:
    """A card whose runs last what a test says; it counts them."""

    def __init__(
        self,
        driver: str = "580.1",
        lacks: str = "",
        lasts: Callable[[int], float] = lambda number: 1.0,
        has_room: bool = True,
        rates: Mapping[object, float] | None = None,
    ) -> None:
        self.driver, self.lacks, self.lasts = driver, lacks, lasts
        self.has_room, self.rates = has_room, dict(rates or {})
        self.runs = 0

    def about(self) -> dict[str, str]:
        return {"device": "Card", "driver": self.driver, "torch": "2"}

    def moves(self) -> Sequence[tuple[int, Run]]:
        size = 1 << 30
        works = (2 * size, lambda: COPY_SECONDS), (size, lambda: SUM_SECONDS)
        return works if self.has_room else ()

    def product(self, dtype: str, shape: Shape) -> Run | None:
        """Return one at the rate of its dtype and its shape."""
        rate = RATE * self.rates.get(dtype, 1.0) * self.rates.get(shape, 1.0)
        seconds = 2 * math.prod(shape) / rate
        return None if dtype == self.lacks else lambda: seconds

    def seconds(self, run: Run) -> float:
        self.runs += 1
        return float(run()) * self.lasts(self.runs)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_SECONDS", 0.0)
    monkeypatch.setattr(calibration, "_WARM_SECONDS", 0.0)


def test_peaks_are_of_the_fastest_run(tmp_path: Path) -> None:
    # a run in five is slower by a tenth
    device = FakeDevice(lasts=lambda number: 1.1 if number % 5 == 0 else 1.0)
    peak = kept_peak(device, tmp_path, NAME)
    assert peak is not None
    assert peak.bandwidth == pytest.approx((1 << 30) / SUM_SECONDS)
    assert set(peak.flops) == {"bfloat16", "float16", "float32", "float8"}
    assert peak.flops["bfloat16"] == pytest.approx(RATE)
    half = bound(Work(1 << 30, 0, {}), peak, 0)
    assert half.milliseconds == pytest.approx(1e3 * SUM_SECONDS)
    for part in ("Card", "driver 580.1", "torch 2", "after a pause"):
        assert part in half.source


def test_peaks_are_measured_once(tmp_path: Path) -> None:
    first = kept_peak(FakeDevice(), tmp_path, NAME)
    again = FakeDevice(lasts=lambda number: 3.0)
    assert kept_peak(again, tmp_path, NAME) == first
    assert again.runs == 0
    kept = json.loads((tmp_path / NAME).read_text())
    about = {"device", "driver", "torch", "how", "date"}
    assert set(kept) == {*about, "bandwidth", "flops"}


@pytest.mark.parametrize("shape", SHAPES)
def test_peak_is_that_of_the_best_shape(tmp_path: Path, shape: Shape) -> None:
    # as where the larger product runs into the power limit
    peak = kept_peak(FakeDevice(rates={shape: 1.2}), tmp_path, NAME)
    assert peak is not None
    assert peak.flops["float8"] == pytest.approx(1.2 * RATE)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8"])
def test_both_formats_of_16_bits_have_one_peak(tmp_path: Path, dtype: str) -> None:
    # values of the one take more power than those of the other
    peak = kept_peak(FakeDevice(rates={dtype: 1.05}), tmp_path, NAME)
    assert peak is not None
    faster = {"float8"} if dtype == "float8" else {"bfloat16", "float16"}
    for name, rate in peak.flops.items():
        assert rate == pytest.approx(RATE * (1.05 if name in faster else 1.0))


@pytest.mark.parametrize("lacks", ["bfloat16", "float16"])
def test_a_format_of_16_bits_that_a_card_lacks_has_no_peak(
    tmp_path: Path, lacks: str
) -> None:
    peak = kept_peak(FakeDevice(lacks=lacks), tmp_path, NAME)
    assert peak is not None
    assert set(peak.flops) == {"bfloat16", "float16", "float32", "float8"} - {lacks}


def test_peaks_that_were_measured_otherwise_are_measured_again(tmp_path: Path) -> None:
    first = kept_peak(FakeDevice(lasts=lambda number: 2.0), tmp_path, NAME)
    kept = json.loads((tmp_path / NAME).read_text())
    # as a file of before: without a pause
    del kept["how"]
    (tmp_path / NAME).write_text(json.dumps(kept))
    peak = kept_peak(FakeDevice(), tmp_path, NAME)
    assert first is not None
    assert peak is not None
    assert peak.bandwidth == pytest.approx(2 * first.bandwidth)


def test_other_driver_is_measured_anew(tmp_path: Path) -> None:
    first = kept_peak(FakeDevice(), tmp_path, NAME)
    slower = FakeDevice(driver="590", lasts=lambda number: 2.0)
    peak = kept_peak(slower, tmp_path, NAME)
    assert first is not None
    assert peak is not None
    assert peak.bandwidth == pytest.approx(first.bandwidth / 2)
    assert json.loads((tmp_path / NAME).read_text())["driver"] == "590"


@pytest.mark.parametrize("text", ["{", "[]", "null", '{"device": "Card"}'])
def test_file_that_says_nothing_is_replaced(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    assert kept_peak(FakeDevice(), tmp_path, NAME) is not None
    assert json.loads((tmp_path / NAME).read_text())["device"] == "Card"


@pytest.mark.parametrize("rate", [0.0, -1.0, "fast", None])
def test_rate_that_is_none_is_measured_anew(tmp_path: Path, rate: object) -> None:
    peak = kept_peak(FakeDevice(), tmp_path, NAME)
    kept = json.loads((tmp_path / NAME).read_text())
    kept["flops"]["float16"] = rate
    (tmp_path / NAME).write_text(json.dumps(kept))
    assert kept_peak(FakeDevice(), tmp_path, NAME) == peak


def test_busy_card_has_no_peaks_and_keeps_none(tmp_path: Path) -> None:
    # most runs wait for somebody else
    device = FakeDevice(lasts=lambda number: 1.0 if number % 5 == 0 else 2.0)
    assert kept_peak(device, tmp_path, NAME) is None
    assert not (tmp_path / NAME).exists()


def test_card_without_room_has_no_peaks(tmp_path: Path) -> None:
    assert kept_peak(FakeDevice(has_room=False), tmp_path, NAME) is None


def test_dtype_that_a_card_lacks_is_left_out(tmp_path: Path) -> None:
    peak = kept_peak(FakeDevice(lacks="float8"), tmp_path, NAME)
    assert peak is not None
    assert "float8" not in peak.flops


def test_folder_that_cannot_be_written_to_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert kept_peak(FakeDevice(), tmp_path / "file", NAME) is not None


def test_cpu_has_no_peaks() -> None:
    assert measured_peak("cpu") is None
