"""A bound is the larger of two times, and what falls below it is impossible."""

from __future__ import annotations

import pytest

from generator.evaluation.clock.light import PEAKS, bound, peak_of, too_fast
from generator.ops.work import Work

H100 = PEAKS["NVIDIA H100 80GB HBM3"]


def test_bytes_bind_where_little_is_computed() -> None:
    # 3.35 GB at 3.35 TB/s
    light = bound(Work(3_000_000_000, 350_000_000, {"bfloat16": 10**9}), H100, 0)
    assert light.milliseconds == light.memory == pytest.approx(1.0)
    assert light.compute == pytest.approx(1e9 / 989.5e12 * 1e3)


def test_operations_bind_where_much_is() -> None:
    flops = 2 * 8192**3
    light = bound(Work(1, 1, {"bfloat16": flops}), H100, 0)
    assert light.milliseconds == light.compute == pytest.approx(1.1112, rel=1e-3)
    half = bound(Work(1, 1, {"float8_e4m3fn": flops}), H100, 0)
    assert half.compute == pytest.approx(light.compute / 2, rel=1e-3)


def test_format_that_the_device_lacks_has_its_fastest_peak() -> None:
    a100 = PEAKS["NVIDIA A100-SXM4-80GB"]
    assert bound(Work(1, 1, {"float8_e4m3fn": 312 * 10**9}), a100, 0).compute == 1.0


def test_impossible_is_what_no_cache_and_no_clock_explains() -> None:
    work = Work(33_500_000, 50_000_000, {})
    light = bound(work, H100, 50 << 20)
    # outputs of 50 MB may stay in the L2
    assert light.least == pytest.approx(0.01)
    assert light.milliseconds == pytest.approx(0.0249, rel=1e-2)
    assert too_fast(0.0101, light) == ""
    assert "33500000 bytes" in too_fast(0.0099, light)
    computes = bound(Work(1, 1, {"bfloat16": 10**12}), H100, 0)
    # an H100 clocks up to 8 % above its datasheet
    assert too_fast(computes.compute / 1.08, computes) == ""
    assert too_fast(computes.compute / 1.2, computes)


@pytest.mark.parametrize(
    ("name", "bandwidth"),
    [
        ("NVIDIA H100 80GB HBM3", 3.35e12),
        ("NVIDIA H100 PCIe", 2.0e12),
        ("NVIDIA H200", 4.8e12),
        ("NVIDIA H200 NVL", 4.8e12),
        ("NVIDIA A100-SXM4-40GB", 1.555e12),
        ("NVIDIA L40S", 0.864e12),
        ("NVIDIA L4", 0.3e12),
    ],
)
def test_device_is_known_by_its_name(name: str, bandwidth: float) -> None:
    found = peak_of(name)
    assert found is not None
    assert found.bandwidth == bandwidth
    assert found.source


def test_unknown_device_has_no_bound() -> None:
    assert peak_of("Some GPU of tomorrow") is None


def test_no_name_hides_a_longer_one() -> None:
    names = list(PEAKS)
    for place, name in enumerate(names):
        assert not any(later.startswith(name) for later in names[place + 1 :])
