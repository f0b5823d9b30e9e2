"""The timed implementations, and the statistics of their figures."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from generator.evaluation.clock.offsets import error_of_one, error_of_one_ratio
from generator.evaluation.clock.sampling import (
    LEAST,
    error_of_middle,
    error_of_ratio,
    is_settled,
    middle,
    spread,
)
from generator.evaluation.clock.session_result import Untimed
from generator.evaluation.clock.timed_calls import HOLD_MS, CalleeLink
from generator.evaluation.verdict import REWARD_HACK, Refused

REFERENCE = "reference"
_RESOLVED = 5.0
# what equal work differs by on a GPU
_LEAST_MS = 2e-3
# standard errors by which two times differ for sure, and a ratio that needs no error
_APART, _FAR = 5.0, 2.0
# calls that are long: in a row, and as a share
_LONG, _MOST_LONG = 3, 0.3
_MOST_VOID = 0.3
# an answer that comes so much earlier gains 2.5 % of what is waited for
_EARLY_MS = 0.03


@dataclass
class Contender:
    """One who is timed: its link, which function, and its figures.

    The device is held for `hold` milliseconds, in which it launches its work.
    """

    name: str
    link: CalleeLink
    which: int
    waits: bool = True
    hold: float = HOLD_MS
    raw: list[tuple[bool, float]] = field(default_factory=list)
    host: list[float] = field(default_factory=list)
    plans: list[float] = field(default_factory=list)
    spent: float = 0.0
    void: int = 0
    long: int = 0
    longs: int = 0
    unturned: int = 0

    @property
    def calls(self) -> int:
        """Return how many calls were made, with those that don't count."""
        return self.void + len(self.raw)

    @property
    def is_disturbed(self) -> bool:
        """Return whether the device was busy before too many of its calls."""
        return self.calls >= LEAST and self.void > _MOST_VOID * self.calls

    @property
    def is_often_long(self) -> bool:
        """Return whether enough calls were long for the device to be waited for.

        Long ones don't count until then: who could make more of them long would choose
        which of its calls count.
        """
        calls = self.longs + len(self.raw)
        return self.long >= _LONG or self.longs > max(_LONG, _MOST_LONG * calls)

    def begin_anew(self, *, waits: bool) -> None:
        """Forget the figures: those with and without waiting don't go together."""
        self.waits, self.long, self.longs = waits, 0, 0
        self.raw.clear()
        self.host.clear()


class EmptyCalls:
    """The time of empty calls: of those that wait for the device, and of others.

    A call with one tiny kernel takes the changes of context and that kernel; one with two
    takes a kernel more. So the difference of both is what a kernel adds to a stream, and
    the first less this difference is what nobody's work takes.
    """

    def __init__(self) -> None:
        self._raw: dict[bool, list[float]] = {True: [], False: []}
        self._twice: list[float] = []
        self._behind: list[float] = []

    def add(self, waits: bool, raw: float, behind: float = 0.0) -> None:
        """Keep the figure of a call with one tiny kernel, and how late its copy was."""
        self._raw[waits].append(raw)
        if waits:
            self._behind.append(behind)

    def add_twice(self, raw: float) -> None:
        """Keep the figure of a call with two, which does not wait for the device."""
        self._twice.append(raw)

    def kernel(self) -> float:
        """Return what a tiny kernel adds; 0 where no call had two."""
        if not self._twice:
            return 0.0
        return max(middle(self._twice) - middle(self._raw[False]), 0.0)

    def of(self, waits: bool) -> float:
        """Return what a call takes beside its work."""
        return middle(self._raw[waits]) - self.kernel()

    def waited(self, behind: float) -> bool:
        """Return whether a callee waited for its work, as an empty call's does.

        Who answers earlier saves the way of the answer, which is then not taken off.
        """
        return behind <= middle(self._behind) + _EARLY_MS

    def resolution(self, waits: bool) -> float:
        """Return what two calls of equal work may differ by, which is no time of anybody."""
        return max(spread(self._raw[waits]), _LEAST_MS)

    def figures(self, contender: Contender) -> list[float]:
        """Return the figures of a contender, without what an empty call takes."""
        zero = {kind: self.of(kind) for kind in {waits for waits, _ in contender.raw}}
        return [max(raw - zero[waits], 0.0) for waits, raw in contender.raw]

    def latency(self, contender: Contender) -> float:
        """Return the middle of a contender's; none is less than the resolution."""
        latency = middle(self.figures(contender))
        return max(latency, self.resolution(contender.waits))


def fastest(rivals: Sequence[Contender], zero: EmptyCalls) -> Contender | None:
    """Return the fastest production kernel, None where none runs here."""
    kernels = [r for r in rivals if r.name != REFERENCE and r.raw]
    return min(kernels, key=zero.latency, default=None)


def may_be_faster(one: Contender, other: Contender, zero: EmptyCalls) -> bool:
    """Return whether more figures may show one to be faster than another.

    It is so until their times lie some standard errors apart.
    """
    error = error_of_ratio(zero.figures(one), zero.figures(other))
    most = min(1.0 + _APART * error, _FAR)
    return zero.latency(one) <= zero.latency(other) * most


def resolved(contender: Contender, zero: EmptyCalls) -> bool:
    """Return whether a time is well above what equal works differ by."""
    least = _RESOLVED * zero.resolution(contender.waits)
    return zero.latency(contender) >= least


def timing_of(
    solution: Contender, rivals: Sequence[Contender], zero: EmptyCalls
) -> dict[str, Any]:
    """Return what a session measured, in milliseconds.

    Without a figure raises Refused for who launched nothing, else Untimed.
    """
    figures = zero.figures(solution)
    if not figures and solution.unturned:
        raise Refused(REWARD_HACK, "it launched nothing in any call that was timed")
    if not figures:
        raise Untimed("each call took longer than the GPU is left to it")
    resolution, latency = zero.resolution(solution.waits), zero.latency(solution)
    timing: dict[str, Any] = {
        "latency_ms": latency,
        "error_ms": error_of_one(error_of_middle(figures)),
        "spread_ms": spread(figures),
        "iterations": len(figures),
        "settled": is_settled(figures),
        "host_ms": statistics.median(solution.host),
        "empty_ms": zero.of(solution.waits),
        "kernel_ms": zero.kernel(),
        "resolution_ms": resolution,
        "resolved": resolved(solution, zero),
        "void": solution.void,
        "rivals": {r.name: zero.latency(r) for r in rivals if r.raw},
    }
    for rival in rivals:
        if rival.name == REFERENCE and rival.raw:
            timing["reference_latency_ms"] = zero.latency(rival)
            timing["speedup_factor"] = zero.latency(rival) / latency
            timing["speedup_error"] = _error_of_speedup(rival, solution, zero)
    kernel = fastest(rivals, zero)
    if kernel is not None:
        other = zero.latency(kernel)
        timing["production"] = kernel.name
        timing["production_latency_ms"] = other
        timing["production_spread_ms"] = spread(zero.figures(kernel))
        timing["production_settled"] = is_settled(zero.figures(kernel))
        timing["speedup_over_production"] = other / latency
        error = _error_of_speedup(kernel, solution, zero)
        timing["speedup_over_production_error"] = error
        if kernel.plans:
            plan = statistics.median(kernel.plans)
            timing["production_plan_ms"] = plan
            timing["production_run_ms"] = max(other - plan, resolution)
    return timing


def _error_of_speedup(other: Contender, one: Contender, zero: EmptyCalls) -> float:
    """Return half of the 95 % interval of the ratio of two latencies of one start."""
    times = [(zero.latency(c), error_of_middle(zero.figures(c))) for c in (other, one)]
    return error_of_one_ratio(*times)
