"""A sandbox with a warm worker, which makes namespaces for a solution at a time."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import kernel_judge
from generator.evaluation.channel import pair, received
from generator.evaluation.frames import Garbled, send
from generator.evaluation.keeper import Keeper
from generator.evaluation.session import Allowed, NotStarted, Session
from generator.evaluation.verdict import Refused
from generator.execution.outcome import CannotRun
from generator.execution.sandbox import (
    CUDA_LIMITS,
    CommandOutcome,
    Limits,
    call_filter,
    run_confined,
)
from generator.problems.messages import one_line

_START_SECONDS = 120.0
_WALL_SECONDS = 7 * 24 * 3600.0
_ENTRIES = 100_000
"""Files and folders that a solution may have."""
_SHORT = 500
_FOLDER = Path(__file__).parent
PROJECT = (_FOLDER.parent, Path(kernel_judge.__file__).parent)
"""What no solution sees."""
INSIDE = "/judge"
_CLOCK = tuple(f"clock/{name}" for name in ("callee", "page", "shared_memory"))
_CONDITIONS = ("conditions/engine", "conditions/graphs")
_FLAT = ("worker", "namespaces", "calling", "building", "frames")
_WORKER = (*_FLAT, *_CLOCK, *_CONDITIONS)
"""Modules of ours that the sandbox shows, all in one folder of its own."""


class _Lost(Exception):
    """Raised with one line where the sandbox has ended."""


class Confinement:
    """A sandbox whose first process has imported torch; each solution has its own.

    Namespaces, files and the user of a solution are made for it and go with it, one at
    a time. Where the sandbox is lost, the next session starts another. `alive` is
    called before each question. Raises CannotRun where nothing can be confined here.
    """

    def __init__(
        self,
        device: str,
        allowed: Allowed,
        hidden: Sequence[Path] = (),
        alive: Callable[[], None] = lambda: None,
    ) -> None:
        self._device, self._allowed, self._alive = device, allowed, alive
        self._hidden = [*PROJECT, *hidden]
        self._limits = _limits(device, allowed)
        self._channel: socket.socket | None = None
        self._is_ready = False
        self._begun: tuple[Keeper, socket.socket] | None = None
        self._outcome: CommandOutcome | None = None

    def prepare(self) -> None:
        """Begin what `open` waits for: the sandbox, and the processes of a session.

        Raises CannotRun where nothing can be confined here.
        """
        if self._begun is not None:
            return
        if self._channel is None:
            self._start()
        (keeps, keeper_end), (asks, asked) = pair(), pair()
        how = {
            "bytes": self._limits.disk_bytes,
            "entries": _ENTRIES,
            "filter": call_filter(devices=self._device == "cuda").hex(),
        }
        self._begun = Keeper(keeps, self._why_lost), asks
        assert self._channel is not None
        # where the last solution ended the sandbox after its verdict, `open` will see it
        with keeper_end, asked, suppress(OSError):
            send(self._channel, how, [keeper_end.fileno(), asked.fileno()])

    def open(self) -> Session:
        """Return a session in which nothing is built yet.

        Raises CannotRun, NotStarted, Refused.
        """
        try:
            return self._opened()
        except (_Lost, NotStarted):
            # as where the last solution ended the sandbox: another one
            self.close()
        try:
            return self._opened()
        except _Lost as lost:
            raise CannotRun(str(lost)) from lost

    def _opened(self) -> Session:
        self.prepare()
        assert self._begun is not None
        assert self._channel is not None
        (keeper, asks), self._begun = self._begun, None
        try:
            if not self._is_ready:
                received(self._channel, _START_SECONDS)
                self._is_ready = True
            answer, _ = received(self._channel, _START_SECONDS)
            failed = answer["failed"] or keeper.begin()
        except (OSError, EOFError, Garbled) as error:
            keeper.close()
            asks.close()
            self.close()
            raise _Lost(self._why(error)) from error
        if failed:
            raise CannotRun(f"no namespace for a solution: {failed}")
        session = Session(asks, keeper, self._device, self._allowed, self._alive)
        # what was prepared may have ended since, its answers unread
        try:
            ended = keeper.ending(within=0.0)
        except Refused as refused:
            ended = refused.reason
        if ended:
            session.close()
            self.close()
            raise _Lost(ended)
        return session

    def close(self) -> None:
        """End the sandbox and all that is in it."""
        if self._begun is not None:
            (keeper, asks), self._begun = self._begun, None
            keeper.close()
            asks.close()
        if self._channel is None:
            return
        self._channel.close()
        self._channel = None
        # one that ended at a limit says so, and one that does not end is stopped
        self._thread.join(0.2)
        self._stop.set()
        self._thread.join()

    def _why_lost(self) -> str:
        """End what is left of a sandbox that a solution ended; return what it ran into."""
        self.close()
        limit = self._outcome.limit if self._outcome else None
        return f"it took its sandbox down ({limit or 'no limit was passed'})"

    def _start(self) -> None:
        here, there = pair()
        worker = f"{INSIDE}/worker.py"
        command = [sys.executable, "-s", "-B", worker]
        command += [str(there.fileno()), self._device]
        files = {
            f"{INSIDE}/{Path(n).name}.py": (_FOLDER / f"{n}.py").read_bytes()
            for n in _WORKER
        }
        self._stop, self._outcome = threading.Event(), None

        def confine() -> None:
            with there:
                self._outcome = run_confined(
                    command,
                    read_only=[],
                    limits=self._limits,
                    devices=self._device == "cuda",
                    hidden=self._hidden,
                    files=files,
                    channel=there.fileno(),
                    stop=self._stop,
                    nests=True,
                )

        self._thread = threading.Thread(target=confine, daemon=True)
        self._thread.start()
        self._channel, self._is_ready = here, False

    def _why(self, error: Exception) -> str:
        outcome = self._outcome
        why = outcome.detail or outcome.stderr or outcome.limit if outcome else ""
        return f"no sandbox: {one_line(why or type(error).__name__, _SHORT)}"


def _limits(device: str, allowed: Allowed) -> Limits:
    base = CUDA_LIMITS if device == "cuda" else Limits()
    memory = max(base.memory_bytes, allowed.memory_bytes)
    whole = replace(base, wall_seconds=_WALL_SECONDS, cpu_seconds=24 * 3600)
    return replace(whole, memory_bytes=memory)
