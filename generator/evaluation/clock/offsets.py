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
_Both = tuple[float, float]
"""The times of a rival and of the solution in one start."""


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

    A speedup is the mean of the ratios within the starts, a rival's time beside it the
    latency times that: what all processes of a start are slower by is in both. Who was not
    timed in more than a start of four is no rival.
    """
    first = timings[0]
    starts = len(timings)
    if starts == 1:
        return {**first, "starts": 1}
    latencies = [float(t["latency_ms"]) for t in timings]
    latency, share = _middle(latencies), _NEAR_MS / statistics.median(latencies)
    far = _far([math.log(one) for one in latencies], share)
    rivals = _rivals(timings)
    error = _half(latencies, [float(t["error_ms"]) for t in timings])
    resolution = APART * error
    timing: dict[str, Any] = {
        **first,
        "latency_ms": latency,
        "error_ms": error,
        "deviation_ms": statistics.stdev(latencies),
        "spread_ms": statistics.median(t["spread_ms"] for t in timings),
        "iterations": sum(t["iterations"] for t in timings),
        "settled": all(t["settled"] for t in timings),
        "void": sum(t["void"] for t in timings),
        "resolution_ms": resolution,
        "resolved": latency >= _RESOLVED * resolution,
        "rivals": {n: _middle([b for b, _ in of]) for n, of in rivals.items()},
        "starts": starts,
        "by_start": [{n: t[n] for n in _OF_A_START if n in t} for t in timings],
    }
    timing |= {n: statistics.fmean(t[n] for t in timings) for n in _MEANS}
    timing |= _telemetry(timings)
    for name in _of_rivals(timing):
        del timing[name]
    if _REFERENCE in rivals:
        names = "speedup_factor", "speedup_error"
        timing |= _ratio(rivals[_REFERENCE], timings, *names)
        timing["reference_latency_ms"] = latency * timing["speedup_factor"]
    kernels = {name: t for name, t in timing["rivals"].items() if name != _REFERENCE}
    if kernels:
        name = min(kernels, key=kernels.__getitem__)
        timing |= _production(name, rivals[name], timings)
        speedup = timing["speedup_over_production"]
        timing["production_latency_ms"] = latency * speedup
        far |= _far(_logs(rivals[name]), share)
    return {**timing, "outliers": len(far)}


def _production(
    name: str,
    of_both: Sequence[_Both],
    timings: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the figures of the kernel that is the fastest over all starts."""
    names = "speedup_over_production", "speedup_over_production_error"
    figures = {"production": name, **_ratio(of_both, timings, *names)}
    mine = [t for t in timings if t.get("production") == name]
    if mine:
        spreads = [t["production_spread_ms"] for t in mine]
        figures["production_spread_ms"] = statistics.median(spreads)
        figures["production_settled"] = all(t["production_settled"] for t in mine)
    plans = [t["production_plan_ms"] for t in mine if "production_plan_ms" in t]
    if plans:
        plan = statistics.median(plans)
        figures["production_plan_ms"] = plan
        other = _middle([b for b, _ in of_both])
        figures["production_run_ms"] = max(other - plan, 0.0)
    return figures


def _rivals(timings: Sequence[Mapping[str, Any]]) -> dict[str, list[_Both]]:
    """Return by name the times of those that have one in enough starts."""
    names = dict.fromkeys(name for t in timings for name in t["rivals"])
    of_all = {
        name: [
            (float(t["rivals"][name]), float(t["latency_ms"]))
            for t in timings
            if name in t["rivals"]
        ]
        for name in names
    }
    least = len(timings) - _ends(len(timings))
    return {name: of for name, of in of_all.items() if len(of) >= least}


def _ratio(
    of_both: Sequence[_Both],
    timings: Sequence[Mapping[str, Any]],
    name: str,
    error: str,
) -> dict[str, float]:
    """Return the ratio of two times over starts, and half of its 95 % interval."""
    logs, near = _logs(of_both), _NEAR_MS / statistics.median(a for _, a in of_both)
    ratio = math.exp(_middle(logs, max(near, _NEAR_SHARE), 0.0))
    stated = [t[error] / t[name] for t in timings if error in t]
    return {name: ratio, error: ratio * _half(logs, stated)}


def _logs(of_both: Sequence[_Both]) -> list[float]:
    """Return logarithms of ratios: which of both times is divided by is the same to them."""
    return [math.log(b / a) for b, a in of_both]


def _middle(
    figures: Sequence[float], least: float = _NEAR_MS, share: float = _NEAR_SHARE
) -> float:
    """Return the mean of the middle half of figures, each moved near their median.

    Near is `least`, or a share of the median if that is more. So what is fast in less than
    half of the starts gains a fraction of that at most.
    """
    median = statistics.median(figures)
    near = max(least, share * median)
    count, ends = len(figures), _ends(len(figures))
    inner = sorted(figures)[ends : count - ends]
    return statistics.fmean(
        min(max(one, median - near), median + near) for one in inner
    )


def _far(logs: Sequence[float], share: float) -> set[int]:
    """Return the numbers of the starts that are far from the median of logarithms."""
    median, near = statistics.median(logs), _FAR * max(share, _NEAR_SHARE)
    return {n for n, one in enumerate(logs) if abs(one - median) > near}


def _ends(count: int) -> int:
    """Return how many figures are left out at each end: one in four."""
    return count // 4


def _half(figures: Sequence[float], stated: Sequence[float]) -> float:
    """Return half of the 95 % interval of a middle, of the figures of each start.

    By the Winsorised variance (Tukey and McLaughlin): what is left out counts as the
    nearest that is not. `stated` are such halves as each start states them alone. They
    stand for some starts more: of two starts alone nobody can tell how far they may be apart.
    """
    count, ends = len(figures), _ends(len(figures))
    ordered = sorted(figures)
    low, high = ordered[ends], ordered[count - 1 - ends]
    moved = [min(max(one, low), high) for one in figures]
    inner = count - 2 * ends
    squares = math.fsum((one - statistics.fmean(moved)) ** 2 for one in moved)
    known = [(one / student(_COUNTS_AS)) ** 2 for one in stated]
    # of one start, with one degree of freedom less than there are inner ones
    expected = statistics.fmean(known) if known else 0.0
    freedom = _COUNTS_AS + inner - 1
    wide = count / inner
    variance = (_COUNTS_AS * expected + wide * squares) / freedom
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
