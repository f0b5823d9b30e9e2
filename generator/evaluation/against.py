"""Regressions: the times of one revision of a dataset against those of another.

A state is a folder, a results.json, a trace file, or a revision of the dataset's git
repository. A time is slower if it is above the other one by more than 5 %, and by more than
the ranges between the quartiles of both together. `verification/waivers.json` names what may be slower, why,
and until when.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from generator.dataset.file_reading import is_absent, read_bytes, walk_files
from generator.dataset.paths import WAIVERS
from generator.evaluation.clock.offsets import error_of_one
from generator.problems import Failure
from generator.problems.messages import one_line, quote

_SHARE = 0.05
_SPREADS = 3.0
# of a measurement whose error is a larger share of it nobody can tell what a claim is
_NOISE = 0.2
# what the clock tells apart
_LEAST_MS = 2e-3
# by which the medians of a call of 4 µs differ from run to run (1.3 µs were seen)
_REPEATS_MS = 1.5e-3
# launches of a reference that the clock hides while it holds the device, if the host is
# quick enough: beside a call of a few µs they are most of its figure
_HIDDEN_MS = 0.4
_MOST_BYTES = 64 << 20
Key = tuple[str, str, str, str]
"""Definition, hardware, solution, and the workload's uuid."""


@dataclass(frozen=True)
class Time:
    """A latency in milliseconds, its range between the quartiles, and the speedup.

    `error` is half of the latency's 95 % interval; a mean of several starts knows from them
    what processes differ by.
    """

    latency: float
    spread: float = 0.0
    speedup: float | None = None
    timestamp: str = ""
    error: float = error_of_one()
    is_of_starts: bool = False


@dataclass(frozen=True)
class Slower:
    """One regression; `waiver` is the reason why it is accepted."""

    definition: str
    hardware: str
    solution: str
    workload: str
    before_ms: float
    after_ms: float
    waiver: str = ""

    @property
    def share(self) -> float:
        """Return by which share it is slower: 0.1 for 10 %."""
        return self.after_ms / self.before_ms - 1.0

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "share": self.share}


@dataclass(frozen=True)
class Waiver:
    """An accepted regression: a solution of a definition, on one workload or on all."""

    definition: str
    solution: str
    reason: str
    until: date
    hardware: str = ""
    workload: str = ""

    def covers(self, one: Slower, today: date) -> bool:
        """Return whether it is about this, and holds today."""
        names = (self.definition, self.solution) == (one.definition, one.solution)
        hardware = self.hardware in ("", one.hardware)
        return (
            names
            and hardware
            and self.workload in ("", one.workload)
            and (today <= self.until)
        )


def compared(
    before: Mapping[Key, Time],
    after: Mapping[Key, Time],
    waivers: Sequence[Waiver] = (),
    today: date | None = None,
) -> list[Slower]:
    """Return what both have and is slower after, the worst first."""
    slower = []
    for key in before.keys() & after.keys():
        old, new = before[key], after[key]
        more = new.latency - old.latency
        spreads = sum(time.spread for time in (old, new) if not time.is_of_starts)
        apart = math.hypot(old.error, new.error)
        if more <= max(_SHARE * old.latency, spreads, apart):
            continue
        one = Slower(*key, old.latency, new.latency)
        day = today or date.today()
        why = next((w.reason for w in waivers if w.covers(one, day)), "")
        slower.append(Slower(*key, old.latency, new.latency, why))
    return sorted(slower, key=lambda one: (-one.share, one.definition, one.workload))


def contradiction(
    claimed: Mapping[str, Any], fresh: Time, least_ms: float = 0.0
) -> str:
    """Return how a trace's `performance` contradicts a fresh measurement, or nothing.

    A latency is contradicted that lies below the measured one by more than three times
    its spread and 5 %, a speedup, stated or that of both latencies, likewise above it.
    Of a spread no more is allowed than a fifth of the time, or 1.5 µs, so that a solution
    gains nothing by taking now this and now that long. Where a call is too short for the
    clock, its reference may have taken 0.4 ms more: what it launches while the clock
    holds the device counts or not by the host. A claim that is too modest stands. The
    spread is the measured one: what a trace says of its own allows it nothing. At least
    `least_ms` are allowed.
    """
    most_allowed = max(_NOISE * fresh.latency, _REPEATS_MS)
    allowed = min(max(_SPREADS * fresh.spread, _SHARE * fresh.latency), most_allowed)
    allowed = max(allowed, least_ms)
    latency, reference, stated = (
        _number(claimed.get(name))
        for name in ("latency_ms", "reference_latency_ms", "speedup_factor")
    )
    if latency is not None and latency < fresh.latency - allowed:
        return (
            f"it claims {latency:.4f} ms, measured are {fresh.latency:.4f} ± "
            f"{allowed:.4f}"
        )
    if fresh.speedup is None:
        return ""
    speedup = max(stated or 0.0, reference / latency if reference and latency else 0.0)
    share = allowed / fresh.latency
    most = fresh.speedup * (1.0 + share)
    if latency and _NOISE * fresh.latency < _LEAST_MS:
        most = max(most, (fresh.speedup * fresh.latency + _HIDDEN_MS) / latency)
    if speedup > most:
        return (
            f"it claims a speedup of {speedup:.2f}, measured are "
            f"{fresh.speedup:.2f} ± {fresh.speedup * share:.2f}"
        )
    return ""


def nearness(claimed: Mapping[str, Any], fresh: Time) -> str:
    """Return why what contradicts a claim does not make it false, nothing where it does.

    It is less than a figure of one start, as a claim is at least, and the measured one are
    apart by their processes.
    """
    apart = math.hypot(fresh.error, error_of_one())
    if contradiction(claimed, fresh, apart):
        return ""
    return f"measured are {fresh.latency:.4f} ± {apart:.4f} ms: too near to tell"


def noise(fresh: Time) -> str:
    """Return why a measurement contradicts no claim, nothing where it may.

    Its error is three spreads, or what the clock tells apart, and over a fifth of it: other
    work of the machine came between, or too little was measured.
    """
    error = max(_SPREADS * fresh.spread, _LEAST_MS)
    if error <= _NOISE * fresh.latency:
        return ""
    return f"measured are {fresh.latency:.4f} ± {error:.4f} ms: too noisy to tell"


def times_of(root: Path) -> dict[Key, Time]:
    """Return the times of a folder's traces, or of a file. Raises Failure."""
    if root.is_file():
        return times_in([(root.name, _read(root.parent, root.name))])
    paths = sorted(walk_files(root, "traces", ".jsonl"))
    if not paths:
        raise Failure(f"There are no traces in {quote(str(root), 200)}.")
    return times_in((path, _read(root, path)) for path in paths)


def times_in(files: Iterable[tuple[str, bytes]]) -> dict[Key, Time]:
    """Return the times of PASSED traces or results, of several of a run the last.

    Lines that are no trace have none. Raises Failure for a results.json that is no JSON.
    """
    times: dict[Key, Time] = {}
    for name, data in files:
        lines = _of_results(name, data) if name.endswith(".json") else _of_traces(data)
        for key, one in lines:
            if key not in times or times[key].timestamp <= one.timestamp:
                times[key] = one
    return times


def waivers_of(root: Path) -> list[Waiver]:
    """Return a dataset's waivers. Raises Failure for a file that has others than these."""
    if is_absent(root, WAIVERS):
        return []
    value = _json(WAIVERS, _read(root, WAIVERS))
    listed = value.get("waivers") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        raise Failure(f"{WAIVERS}: it has no list `waivers`.")
    waivers = []
    for number, one in enumerate(listed):
        where = f"{WAIVERS} /waivers/{number}"
        names = ("definition", "solution", "reason", "until")
        if not isinstance(one, dict) or not all(
            isinstance(v, str) for v in one.values()
        ):
            raise Failure(f"{where}: a waiver has strings by name.")
        if lacks := [name for name in names if not one.get(name, "").strip()]:
            raise Failure(f"{where}: it lacks {', '.join(lacks)}.")
        if others := one.keys() - {*names, "hardware", "workload"}:
            raise Failure(f"{where}: it has no {one_line(min(others), 60)}.")
        try:
            until = date.fromisoformat(one["until"])
        except ValueError:
            raise Failure(f"{where}/until: no day as 2026-12-31.") from None
        waivers.append(Waiver(**{**one, "until": until}))
    return waivers


def _of_traces(data: bytes) -> Iterator[tuple[Key, Time]]:
    for line in data.splitlines():
        try:
            value = json.loads(line)
            evaluation = value["evaluation"]
            if evaluation["status"] != "PASSED":
                continue
            time = _time(evaluation["performance"], evaluation.get("timestamp"))
            hardware = evaluation["environment"]["hardware"]
            key = value["definition"], hardware, value["solution"]
            uuid = value["workload"]["uuid"]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if time is not None:
            yield (*map(str, key), str(uuid)), time  # type: ignore[misc]


def _of_results(name: str, data: bytes) -> Iterator[tuple[Key, Time]]:
    value = _json(name, data)
    try:
        hardware, timestamp = value["environment"]["hardware"], value["timestamp"]
        for solution in value["solutions"]:
            for case in solution["cases"]:
                workload, timing = case["workload"], case["timing"]
                if case["verdict"] != "PASSED" or not workload or not timing:
                    continue
                time = _time(timing, timestamp)
                names = (solution["definition"], hardware, solution["solution"])
                if time is not None:
                    yield (*map(str, names), str(workload["uuid"])), time  # type: ignore[misc]
    except (KeyError, TypeError):
        raise Failure(f"{one_line(name)}: it is no results.json of evaluate.") from None


def _time(figures: Any, timestamp: Any) -> Time | None:
    """Return a time of figures that are numbers, None without a latency."""
    names = ("latency_ms", "spread_ms", "speedup_factor", "error_ms", "starts")
    latency, spread, speedup, error, starts = (
        _number(figures.get(name)) for name in names
    )
    if latency is None or not 0.0 < latency < 1e12:
        return None
    wide = spread if spread is not None and 0.0 <= spread < 1e12 else 0.0
    at = str(timestamp or "")
    if error is None or not 0.0 <= error < 1e12:
        # another program's: of one start, of whose processes it says nothing
        return Time(latency, wide, speedup, at)
    return Time(latency, wide, speedup, at, error, (starts or 1.0) > 1.0)


def _number(value: Any) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number else None


def _json(name: str, data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise Failure(f"{one_line(name)}: it is no JSON.") from None


def _read(root: Path, path: str) -> bytes:
    try:
        return read_bytes(root, path, _MOST_BYTES)
    except OSError as error:
        raise Failure(f"{one_line(path, 200)}: {error}") from None
