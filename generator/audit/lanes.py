"""Mutants through several children at a time: one that is broken by one is replaced."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial

from generator.audit.bench import loaded
from generator.audit.job import (
    EQUIVALENCE_SECONDS,
    Job,
    Planned,
    ended,
    timed_out,
)
from generator.audit.result import CAUGHT, SURVIVED, TIMED_OUT, MutantResult
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


def objection(job: Job, waiting: float | None = None) -> str | None:
    """Return why the reference itself is caught where its mutants run; None if not.

    What it is caught by there, and was not where it was prepared, is no mutant's doing:
    a memory that is too small for it, or what it does to its process.
    """
    name = "the reference"
    own = Planned(MutantResult(name, "", SURVIVED), loaded(job.definition.reference))
    alone = replace(job, planned=[own], equivalences=())
    for _, result in run_all(alone, 1, waiting):
        if result.status in (CAUGHT, TIMED_OUT):
            at = " in case ".join(filter(None, (result.test or "run", result.case)))
            return f"{name} itself does not pass {at} where mutants run: {result.why}"
    return None


class _Lane:
    """Hold a child that runs mutants, where it is, and until when it must speak."""

    def __init__(self, job: Job, waiting: float) -> None:
        self._job = job
        self._waiting = waiting
        self._child: Child | None = None
        self._is_second = False
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
        self._is_second = False
        self._ask(place)
        return True

    def _ask(self, place: int) -> None:
        if self._child is None:
            self._child = Child(partial(_run, self._job))
        self.place = place
        self.until = time.monotonic() + self._waiting
        # one that is gone meanwhile is told as this mutant's end
        with suppress(OSError):
            self.link.send({"event": "next", "place": place})

    def result(self) -> MutantResult | None:
        """Return what became of the mutant; None where that is not known yet."""
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
        was_silent = self.link.silent
        self.close()
        if was_silent:
            return timed_out(planned, how)
        if self._is_second:
            return ended(planned, how)
        # what an earlier one left behind may have done that, or a system short of
        # memory: it is this one's doing if it happens in a child of its own as well
        self._is_second = True
        self._ask(self.place)
        return None

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
    # what is here already is not looked at again for each
    gc.freeze()
    limit_memory(_most_bytes(job) + MORE_BYTES)
    tell = partial(link.send, {"event": "passed"})
    while (task := link.receive()) is not None:
        result = job.audit(task["place"], tell)
        link.send({"event": "mutant", "result": asdict(result)})
        # what one kept in its globals, a cycle, takes none of the next one's memory
        gc.collect()


def _most_bytes(job: Job) -> int:
    definition, count = job.bench.cls.definition(), job.bench.cls.peak_bytes
    stands = job.bench.stands
    return max((needed_bytes(definition, s.case, count) for s in stands), default=0)
