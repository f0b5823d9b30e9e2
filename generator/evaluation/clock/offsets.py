"""The error of a figure: what processes differ by, and the figures of several starts.

All work of a CUDA context is a little faster or slower for as long as its process lives.
That is no error of calls, and nothing of the process's own measures it. So the error of a
figure of one start is what such offsets were measured to be, and that of several starts is
what their figures differ by, with the known offsets as a few further ones.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

MOST_STARTS = 64
"""Starts that may be asked for."""
OFFSET_MS, EMPTY_OFFSET_MS = 0.3e-3, 0.6e-3
"""Standard deviations between processes: of work that fills the device, of empty calls.

Of five groups of eight processes on H100s the first was 0.14 to 0.46 µs, its root mean
square 0.31 (docs/measurements.md).
"""
_COUNTS_AS = 4
"""As many further starts the known deviations count: those five groups differ from each
other as samples of eight do whose own deviation is known that well."""
_NORMAL = 1.959964
_NEAR_MS, _NEAR_SHARE, _FAR = 1.5e-3, 0.02, 2.0
APART = math.sqrt(2.0)
"""By which errors of equal works differ more than one."""
_RESOLVED = 5.0
_MEANS = ("empty_ms", "kernel_ms", "host_ms")
_OF_A_START = (
    *("latency_ms", "reference_latency_ms", "speedup_factor", "production"),
    *("production_latency_ms", "speedup_over_production", "iterations"),
)
_REFERENCE = "reference"


def student(freedom: int) -> float:
    """Return the half width of Student's 95 % interval, to 0.5 % from 4 degrees on.

    The first terms of the expansion in 1/freedom (Abramowitz and Stegun, 26.7.5).
    """
    z, n = _NORMAL, float(freedom)
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )


def error_of_one(within_ms: float = 0.0) -> float:
    """Return half of the 95 % interval of a latency of one start.

    `within_ms` is the standard error of its calls. The empty calls that are taken off have
    an offset as well.
    """
    known = math.hypot(OFFSET_MS, EMPTY_OFFSET_MS, _finite(within_ms))
    return student(_COUNTS_AS) * known


def error_of_one_ratio(
    other: tuple[float, float], latency: tuple[float, float]
) -> float:
    """Return half of the 95 % interval of other over latency, both of one start.

    Both are times with the standard errors of their calls. What is taken off is the same of
    both: of equal times its offset does not count.
    """
    (b, b_within), (a, a_within) = other, latency
    shares = [OFFSET_MS / a, OFFSET_MS / b, EMPTY_OFFSET_MS * (1.0 / a - 1.0 / b)]
    shares += [_finite(a_within) / a, _finite(b_within) / b]
    return student(_COUNTS_AS) * math.hypot(*shares) * b / a


def together(timings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of a workload from those of its starts, one or more.

    A speedup is the ratio of two times over all starts; its error is that of the
    differences within them. Who was not timed in each of them is no rival.
    """
    first = timings[0]
    starts = len(timings)
    if starts == 1:
        return {**first, "starts": 1}
    latencies = [float(t["latency_ms"]) for t in timings]
    latency, outliers = _middle(latencies)
    rivals = _rivals(timings)
    known = [(float(t["error_ms"]) / student(_COUNTS_AS)) ** 2 for t in timings]
    error = _half([one - latency for one in latencies], known)
    resolution = APART * error
    timing: dict[str, Any] = {
        **first,
        "latency_ms": latency,
        "error_ms": error,
        "deviation_ms": statistics.stdev(latencies),
        "outliers": outliers,
        "spread_ms": statistics.median(t["spread_ms"] for t in timings),
        "iterations": sum(t["iterations"] for t in timings),
        "settled": all(t["settled"] for t in timings),
        "void": sum(t["void"] for t in timings),
        "resolution_ms": resolution,
        "resolved": latency >= _RESOLVED * resolution,
        "rivals": {name: _middle(times)[0] for name, times in rivals.items()},
        "starts": starts,
        "by_start": [{n: t[n] for n in _OF_A_START if n in t} for t in timings],
    }
    timing |= {n: statistics.fmean(t[n] for t in timings) for n in _MEANS}
    timing |= _telemetry(timings)
    for name in _of_rivals(timing):
        del timing[name]
    if _REFERENCE in rivals:
        timing["reference_latency_ms"] = timing["rivals"][_REFERENCE]
        names = "speedup_factor", "speedup_error"
        timing |= _ratio(rivals[_REFERENCE], latencies, timings, *names)
    kernels = [name for name in rivals if name != _REFERENCE]
    if kernels:
        timing |= _production(kernels, rivals, latencies, timings)
    return timing


def _production(
    kernels: Sequence[str],
    rivals: Mapping[str, Sequence[float]],
    latencies: Sequence[float],
    timings: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the figures of the kernel that is the fastest over all starts."""
    name = min(kernels, key=lambda one: _middle(rivals[one])[0])
    other, _ = _middle(rivals[name])
    figures: dict[str, Any] = {"production": name, "production_latency_ms": other}
    names = "speedup_over_production", "speedup_over_production_error"
    figures |= _ratio(rivals[name], latencies, timings, *names)
    mine = [t for t in timings if t.get("production") == name]
    if mine:
        spreads = [t["production_spread_ms"] for t in mine]
        figures["production_spread_ms"] = statistics.median(spreads)
        figures["production_settled"] = all(t["production_settled"] for t in mine)
    plans = [t["production_plan_ms"] for t in mine if "production_plan_ms" in t]
    if plans:
        plan = statistics.median(plans)
        figures["production_plan_ms"] = plan
        figures["production_run_ms"] = max(other - plan, 0.0)
    return figures


def _rivals(timings: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Return by name the times of those that have one in each start."""
    return {
        name: [float(t["rivals"][name]) for t in timings]
        for name in timings[0]["rivals"]
        if all(name in t["rivals"] for t in timings)
    }


def _ratio(
    others: Sequence[float],
    latencies: Sequence[float],
    timings: Sequence[Mapping[str, Any]],
    name: str,
    error: str,
) -> dict[str, float]:
    """Return the ratio of two times over starts, and half of its 95 % interval."""
    (other, _), (mine, _) = _middle(others), _middle(latencies)
    off = [b / other - a / mine for b, a in zip(others, latencies, strict=True)]
    known = [
        (t[error] / t[name] / student(_COUNTS_AS)) ** 2 for t in timings if error in t
    ]
    ratio = other / mine
    return {name: ratio, error: ratio * _half(off, known)}


def _middle(times: Sequence[float]) -> tuple[float, int]:
    """Return the mean of times, each moved near their median, and how many are far from it.

    So what is fast in less than half of the starts gains a fraction of the width alone;
    errors are of the times as they are.
    """
    median = statistics.median(times)
    near = max(_NEAR_MS, _NEAR_SHARE * median)
    moved = [min(max(one, median - near), median + near) for one in times]
    outliers = sum(abs(one - median) > _FAR * near for one in times)
    return statistics.fmean(moved), outliers


def _half(off: Sequence[float], known: Sequence[float]) -> float:
    """Return half of the 95 % interval of a mean, of what each start is off by.

    `known` are the variances that are expected of one start. They stand for some starts
    more: of two starts alone nobody can tell how far they may be apart.
    """
    count = len(off)
    freedom = _COUNTS_AS + count - 1
    expected = statistics.fmean(known) if known else 0.0
    variance = (_COUNTS_AS * expected + math.fsum(o**2 for o in off)) / freedom
    return student(freedom) * math.sqrt(variance / count)


def _of_rivals(timing: Mapping[str, Any]) -> list[str]:
    """Return the names of figures of rivals, which are those of one start alone."""
    begins = ("production", "speedup", "reference_")
    return [name for name in timing if name.startswith(begins)]


def _telemetry(timings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what NVML said in all starts."""
    watched = [t for t in timings if "clocks_mhz" in t]
    if not watched:
        return {}
    clocks = [t["clocks_mhz"] for t in watched]
    reasons = {one for t in watched for one in t["throttle_reasons"]}
    return {
        "clocks_mhz": {
            "sm": sorted(c["sm"] for c in clocks)[len(clocks) // 2],
            "sm_least": min(c["sm_least"] for c in clocks),
            "memory": sorted(c["memory"] for c in clocks)[len(clocks) // 2],
        },
        "power_watts": max(t["power_watts"] for t in watched),
        "throttled": sum(t["throttled"] for t in watched),
        "throttle_reasons": sorted(reasons),
    }


def _finite(value: float) -> float:
    """Return a standard error; 0 of a single call, whose own nobody knows."""
    return value if math.isfinite(value) else 0.0
