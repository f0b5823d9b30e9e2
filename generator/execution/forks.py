"""Run numbered tasks in forks of this process: one fails alone, the others go on."""

from __future__ import annotations

import faulthandler
import gc
import select
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from generator.execution.child import Child, Event, Link, by_status
from generator.execution.limits import end_orphans
from generator.execution.outcome import (
    CONTEXT_LOST,
    CRASHED,
    DONE,
    FORGED,
    OUT_OF_MEMORY,
    RAISED,
    TIMED_OUT,
    CannotRun,
    Outcome,
)
from generator.problems.messages import one_line

# tasks a fork, by which those that are yielded in order may be behind
_WINDOW = 4
# for a child that closed its end, until it is killed
_LEAVING_SECONDS = 0.5
# what a child says of a task; after the first three it goes on
_ANSWERS = (DONE, RAISED, OUT_OF_MEMORY, CONTEXT_LOST)
# what torch and its allocators say, each in its own words
_MEMORY = "memoryerror", "not enough memory", "can't allocate memory", "out of memory"
Work = Callable[[Any, Link], Any]


@dataclass(frozen=True)
class Forks:
    """Settings of the forks.

    `jobs` run at a time. `timeout` is in seconds without a sign of life. A fork runs
    `per_fork` tasks, None for as many as there are. `in_order` yields the outcomes by
    their places. `on_start` gets the place of each task that begins. `collects` cycles of
    objects after each task: those of the globals of code that it executed. With `stay`
    forks wait for the next run, which has to be of the same work, until `close`.
    """

    jobs: int
    timeout: float
    per_fork: int | None = None
    in_order: bool = False
    on_start: Callable[[int], None] = lambda place: None
    collects: bool = True
    stay: bool = False
    _idle: list[_Fork] = field(default_factory=list, init=False, compare=False)

    def close(self) -> None:
        """End the forks that wait."""
        while self._idle:
            self._idle.pop().child.close()

    def run(self, work: Work, tasks: Sequence[Any]) -> Iterator[tuple[int, Outcome]]:
        """Yield the place and the outcome of `work(task, link)` for each task, a JSON value.

        A task that ends badly where another may be at fault runs again, alone and in a
        fresh fork: what the other left behind, or all memory it took, is gone by then.
        """
        count = len(tasks)
        waiting, again, alone = deque(range(count)), deque[int](), set[int]()
        busy, idle = list[_Fork](), self._idle
        held: dict[int, Outcome] = {}
        following = 0
        try:
            while waiting or again or busy:
                last = following + _WINDOW * self.jobs if self.in_order else count
                while waiting and waiting[0] < last and len(busy) < self.jobs:
                    busy.append(idle.pop() if idle else _Fork(work, self.collects))
                    busy[-1].begin(waiting[0], tasks[waiting.popleft()], self)
                if not busy:
                    self.close()
                    alone.add(again[0])
                    busy = [_Fork(work, self.collects)]
                    busy[0].begin(again[0], tasks[again.popleft()], self)
                for fork in _ready(busy):
                    outcome = fork.outcome()
                    if outcome is None:
                        continue
                    busy.remove(fork)
                    if fork.is_over or fork.begun == self.per_fork:
                        fork.child.close()
                        end_orphans({other.child.pid for other in (*busy, *idle)})
                    else:
                        idle.append(fork)
                    if fork.was_it_another and fork.place not in alone:
                        again.append(fork.place)
                    else:
                        held[fork.place] = outcome
                while held and (not self.in_order or following in held):
                    place = following if self.in_order else next(iter(held))
                    yield place, held.pop(place)
                    following += 1
        finally:
            for fork in busy:
                fork.child.close()
            if not self.stay:
                self.close()


class _Fork:
    """A child that runs tasks, the place of the one under way, and its deadline.

    After an outcome, `is_over` says that the child is of no use any more, and
    `was_it_another` that an earlier task, or a lack of memory, may be the cause.
    """

    def __init__(self, work: Work, collects: bool) -> None:
        self.child = Child(partial(_serve, work, collects))
        self.begun = 0
        self.is_over = self.was_it_another = False

    def begin(self, place: int, task: Any, how: Forks) -> None:
        """Let the child run a task, which has that place."""
        self.place, self.begun = place, self.begun + 1
        self._timeout, self._start = how.timeout, time.monotonic()
        self.until = self._start + how.timeout
        self._said: list[Any] = []
        self._where = ""
        how.on_start(place)
        # if the child has ended meanwhile, `outcome` reports it
        with suppress(OSError):
            self.child.link.send({"event": "next", "place": place, "task": task})

    def outcome(self) -> Outcome | None:
        """Return the outcome of the task under way, None while there is none."""
        link, is_killed = self.child.link, False
        event = link.receive(0.0)
        if event is not None:
            try:
                outcome = self._read(event)
            except (KeyError, TypeError, ValueError):
                why = "code of the definition reported the end of the work"
                outcome = Outcome(FORGED, why=why)
        elif link.silent:
            is_late = time.monotonic() >= self.until
            outcome = Outcome(TIMED_OUT, why="did not answer any more")
            outcome = outcome if is_late else None
        elif link.garbled:
            why = "wrote to the connection of the process that runs it"
            outcome = Outcome(FORGED, why=why)
        else:
            code = self.child.close(_LEAVING_SECONDS)
            is_killed = code == -signal.SIGKILL
            outcome = Outcome(CRASHED, why=f"ended its process {by_status(code)}")
        if outcome is None:
            return None
        self.is_over = outcome.status not in _ANSWERS[:3]
        # the system kills, most likely, for memory that others use
        suspect = self.begun > 1 or is_killed
        is_own = outcome.status in (DONE, RAISED, TIMED_OUT)
        self.was_it_another = suspect and not is_own
        if outcome.status != DONE and self._where:
            outcome = replace(outcome, why=f"{outcome.why} {self._where}")
        seconds = round(time.monotonic() - self._start, 2)
        return replace(outcome, said=self._said, seconds=seconds)

    def _read(self, event: Event) -> Outcome | None:
        """Return an event's outcome, None for a sign of life; raises for what is neither."""
        kind = event["event"]
        if kind in ("at", "said"):
            if kind == "said":
                self._said.append(event["value"])
            else:
                self._where = str(event["where"])
            within = float(event.get("within") or self._timeout)
            self.until = time.monotonic() + within
            return None
        if event["place"] != self.place or kind not in _ANSWERS:
            raise ValueError(kind)
        return Outcome(kind, event.get("value"), str(event.get("why", "")))


def _ready(forks: list[_Fork]) -> list[_Fork]:
    """Return the forks with an event, or whose deadline has passed."""
    ready = {fork.child.link for fork in forks if fork.child.link.has_event}
    if not ready:
        links = [fork.child.link for fork in forks]
        seconds = min(fork.until for fork in forks) - time.monotonic()
        ready = set(select.select(links, [], [], max(seconds, 0.0))[0])
    now = time.monotonic()
    return [f for f in forks if f.child.link in ready or f.until <= now]


def _serve(work: Work, collects: bool, link: Link) -> None:
    """Run the tasks that the parent names until it closes the connection."""
    # the collections below need not scan what was made before the fork
    gc.freeze()
    # the parent says how a fork ended; pytest would print the stack of one that aborts
    faulthandler.disable()
    while (event := link.receive()) is not None:
        place = event["place"]
        try:
            answer: Event = {"event": DONE, "value": work(event["task"], link)}
        except CannotRun as error:
            answer = {"event": RAISED, "why": str(error)}
        except BaseException as error:  # noqa: BLE001
            words = f"{type(error).__name__} {error}".lower()
            is_memory = any(phrase in words for phrase in _MEMORY)
            kind = OUT_OF_MEMORY if is_memory else RAISED
            answer = {"event": kind, "why": _short(error)}
        if lost := _lost_context():
            answer = {"event": CONTEXT_LOST, "why": f"{CONTEXT_LOST}: {lost}"}
        link.send({**answer, "place": place})
        # free what this task kept in its globals: they are part of a cycle
        if collects:
            gc.collect()


def _short(error: BaseException) -> str:
    """Return a kind of error and the first line of what it says."""
    lines = str(error).strip().splitlines() or [""]
    return one_line(f"{type(error).__name__}: {lines[0]}", 200)


def _lost_context() -> str:
    """Return why this process's CUDA context can't be used any more, if it can't."""
    torch = sys.modules.get("torch")
    try:
        if torch is not None and torch.cuda.is_initialized():
            torch.cuda.synchronize()
    except Exception as error:  # noqa: BLE001
        return _short(error)
    return ""
