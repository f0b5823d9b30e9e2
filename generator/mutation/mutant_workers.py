"""Run mutants in several child processes; replace a child that a mutant breaks."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial

from generator.execution.child import Child, Link, with_events
from generator.execution.limits import MORE_BYTES, limit_memory
from generator.mutation.audit_job import (
    EQUIVALENCE_SECONDS,
    AuditJob,
    Planned,
    ended,
    timed_out,
)
from generator.mutation.bench import loaded
from generator.results.audit_result import CAUGHT, SURVIVED, TIMED_OUT, MutantResult
from generator.testing.memory import needed_bytes

# wall-clock seconds for a second of CPU: on a busy machine a process gets a part of it
PATIENCE = 5.0
GRACE_SECONDS = 10.0
_CHECKING = PATIENCE * EQUIVALENCE_SECONDS + GRACE_SECONDS


def waiting_seconds(job: AuditJob) -> float:
    """Return the wall-clock seconds after which a silent mutant is timed out."""
    return PATIENCE * job.bench.longest + GRACE_SECONDS


def run_all(
    job: AuditJob, lanes: int, waiting: float | None = None
) -> Iterator[tuple[int, MutantResult]]:
    """Yield the place and the result of each mutant, in the order in which they end.

    `lanes` children run side by side; each takes the next mutant when it is free.
    `waiting` is the timeout of a mutant in wall-clock seconds.
    """
    seconds = waiting_seconds(job) if waiting is None else waiting
    places = iter(range(len(job.planned)))
    all_lanes = [_Lane(job, seconds) for _ in range(lanes)]
    try:
        busy = [lane for lane in all_lanes if lane.begin(next(places, None))]
        while busy:
            for lane in _ready(busy):
                result = lane.result()
                if result is None:
                    continue
                yield lane.place, result
                if not lane.begin(next(places, None)):
                    busy.remove(lane)
    finally:
        for lane in all_lanes:
            lane.close()


def objection(job: AuditJob, waiting: float | None = None) -> str | None:
    """Return why the reference fails in a child that runs mutants, None if it passes.

    It passed while it was prepared: in the child its memory limit may be too small, or
    it changes its process. Mutants would be caught for the same reason.
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
    """Hold a child that runs mutants, the place of its mutant, and its deadline."""

    def __init__(self, job: AuditJob, waiting: float) -> None:
        self._job = job
        self._waiting = waiting
        self._child: Child | None = None
        self._is_second = False
        self.place = -1
        self.until = 0.0

    @property
    def link(self) -> Link:
        """Return the connection to the child, which exists after `begin`."""
        assert self._child is not None
        return self._child.link

    def begin(self, place: int | None) -> bool:
        """Let the child run the mutant of a place; return False if there is none."""
        if place is None:
            return False
        self._is_second = False
        self._start(place)
        return True

    def _start(self, place: int) -> None:
        if self._child is None:
            self._child = Child(partial(_run, self._job))
        self.place = place
        self.until = time.monotonic() + self._waiting
        # if the child has ended meanwhile, `result` reports it
        with suppress(OSError):
            self.link.send({"event": "next", "place": place})

    def result(self) -> MutantResult | None:
        """Return the mutant's result, None while it is running."""
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
        # an earlier mutant's threads, or a lack of memory, may have ended the child:
        # the mutant is caught only if it ends a new child as well
        self._is_second = True
        self._start(self.place)
        return None

    def close(self) -> None:
        """End the child; the next mutant gets a new one."""
        if self._child is not None:
            self._child.close()
            self._child = None


def _ready(lanes: list[_Lane]) -> list[_Lane]:
    """Return the lanes with an event, or whose deadline has passed."""
    first = min(lane.until for lane in lanes)
    links = with_events([lane.link for lane in lanes], first - time.monotonic())
    now = time.monotonic()
    return [lane for lane in lanes if lane.link in links or lane.until <= now]


def _run(job: AuditJob, link: Link) -> None:
    """Run the mutants that the parent names until it closes the connection."""
    # the collections below need not scan what was made before the fork
    gc.freeze()
    limit_memory(_most_bytes(job) + MORE_BYTES)
    on_survival = partial(link.send, {"event": "passed"})
    while (task := link.receive()) is not None:
        result = job.audit(task["place"], on_survival)
        link.send({"event": "mutant", "result": asdict(result)})
        # free what this mutant kept in its globals: they are part of a cycle
        gc.collect()


def _most_bytes(job: AuditJob) -> int:
    definition, count = job.bench.cls.definition(), job.bench.cls.peak_bytes
    stands = job.bench.stands
    return max((needed_bytes(definition, s.case, count) for s in stands), default=0)
