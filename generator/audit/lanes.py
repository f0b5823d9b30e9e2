"""Mutants through several children at a time: one that is broken by one is replaced."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import partial

from generator.audit.job import EQUIVALENCE_SECONDS, Job, ended, timed_out
from generator.audit.result import MutantResult
from generator.inquiry.child import Child, Link, with_events
from generator.inquiry.limits import MORE_BYTES, limit_memory
from generator.support.memory import needed_bytes

# on a busy machine a process gets a part of the time: seconds of a clock for one of CPU
PATIENCE = 5.0
GRACE_SECONDS = 10.0
_CHECKING = PATIENCE * EQUIVALENCE_SECONDS + GRACE_SECONDS


def waiting_seconds(job: Job) -> float:
    """Return for how long nothing may be heard of a mutant."""
    return PATIENCE * job.bench.longest + GRACE_SECONDS


def run_all(
    job: Job, lanes: int, waiting: float | None = None
) -> Iterator[tuple[int, MutantResult]]:
    """Yield what becomes of each mutant and its place, in the order in which it ends.

    So many children run one after another, each the next that none has. `waiting` is
    for how long nothing may be heard of one before it ends, in seconds of a clock.
    """
    seconds = waiting_seconds(job) if waiting is None else waiting
    places = iter(range(len(job.planned)))
    all_lanes = [_Lane(job, seconds) for _ in range(lanes)]
    try:
        busy = [lane for lane in all_lanes if lane.begin(next(places, None))]
        while busy:
            for lane in _heard(busy):
                result = lane.result()
                if result is None:
                    continue
                yield lane.place, result
                if not lane.begin(next(places, None)):
                    busy.remove(lane)
    finally:
        for lane in all_lanes:
            lane.close()


class _Lane:
    """Hold a child that runs mutants, where it is, and until when it must speak."""

    def __init__(self, job: Job, waiting: float) -> None:
        self._job = job
        self._waiting = waiting
        self._child: Child | None = None
        self.place = -1
        self.until = 0.0

    @property
    def link(self) -> Link:
        """Return the connection to the child; there is one once it has begun."""
        assert self._child is not None
        return self._child.link

    def begin(self, place: int | None) -> bool:
        """Let the child run the mutant of a place; return whether there is one."""
        if place is None:
            return False
        if self._child is None:
            self._child = Child(partial(_run, self._job))
        self.place = place
        self.until = time.monotonic() + self._waiting
        # one that is gone meanwhile is told as this mutant's end
        with suppress(OSError):
            self.link.send({"event": "next", "place": place})
        return True

    def result(self) -> MutantResult | None:
        """Return what became of the mutant; None where only its tests are through."""
        assert self._child is not None
        event = self.link.receive(max(self.until - time.monotonic(), 0.0))
        with suppress(KeyError, TypeError):
            if event is not None and event["event"] == "passed":
                self.until = time.monotonic() + _CHECKING
                return None
            if event is not None:
                return MutantResult(**event["result"])
        planned = self._job.planned[self.place].result
        how = self._child.how_it_ended()
        tell = timed_out if self.link.silent else ended
        self.close()
        return tell(planned, how)

    def close(self) -> None:
        """End the child; the next mutant gets another."""
        if self._child is not None:
            self._child.close()
            self._child = None


def _heard(lanes: list[_Lane]) -> list[_Lane]:
    """Return the lanes that have something to say, or had to by now."""
    first = min(lane.until for lane in lanes)
    links = with_events([lane.link for lane in lanes], first - time.monotonic())
    now = time.monotonic()
    return [lane for lane in lanes if lane.link in links or lane.until <= now]


def _run(job: Job, link: Link) -> None:
    """Run the mutants that the parent names until it is gone."""
    limit_memory(_most_bytes(job) + MORE_BYTES)
    tell: Callable[[], None] = lambda: link.send({"event": "passed"})
    while (task := link.receive()) is not None:
        result = job.audit(task["place"], tell)
        link.send({"event": "mutant", "result": asdict(result)})


def _most_bytes(job: Job) -> int:
    definition, count = job.bench.cls.definition(), job.bench.cls.peak_bytes
    stands = job.bench.stands
    return max((needed_bytes(definition, s.case, count) for s in stands), default=0)
