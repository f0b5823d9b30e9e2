"""A sandbox with a warm worker, in which a solution at a time is called."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from generator.evaluation.channel import pair, received
from generator.evaluation.frames import Garbled, send
from generator.evaluation.session import Allowed, Session
from generator.execution.sandbox import CUDA_LIMITS, Limits, Outcome, run_confined
from generator.problems import Failure
from generator.problems.messages import one_line

_START_SECONDS, _END_SECONDS = 120.0, 20.0
_WALL_SECONDS = 7 * 24 * 3600.0
_SHORT = 500
_PROJECT = Path(__file__).resolve().parents[1]
_WORKER = (
    *(f"evaluation/{n}.py" for n in ("worker", "calling", "events", "building")),
    *("evaluation/frames.py", "execution/limits.py"),
)
"""Files of ours that the sandbox shows."""


class Confinement:
    """Hold a sandbox whose worker has imported torch; a solution at a time is in it.

    Where the worker is lost, the next session starts another. `alive` is called before
    each question. Raises Failure where nothing can be confined here.
    """

    def __init__(
        self,
        device: str,
        allowed: Allowed,
        hidden: Sequence[Path] = (),
        alive: Callable[[], None] = lambda: None,
    ) -> None:
        self.device, self.allowed, self.alive = device, allowed, alive
        self._hidden = [_PROJECT, *hidden]
        self._channel: socket.socket | None = None
        self.pid = 0
        self._outcome: Outcome | None = None

    def open(self) -> Session:
        """Return a session in which nothing is built yet. Raises Refused."""
        if self._channel is None:
            self._start()
        assert self._channel is not None
        here, there = pair()
        self._channel.settimeout(_END_SECONDS)
        with there:
            send(self._channel, {"begin": True}, [there.fileno()])
        received(self._channel, _START_SECONDS)
        return Session(self, here)

    def end(self) -> str:
        """End the solution under way; return how its process ended, if badly."""
        if self._channel is None:
            return ""
        self._channel.settimeout(_END_SECONDS)
        try:
            send(self._channel, {"end": True})
            ended = int(received(self._channel, _END_SECONDS)[0]["ended"])
        except (OSError, EOFError, Garbled, KeyError, ValueError):
            self.close()
            limit = self._outcome.limit if self._outcome else None
            return f"it took its sandbox down ({limit or 'no limit was passed'})"
        if ended in (0, -9):
            return ""
        return f"its process ended {f'by signal {-ended}' if ended < 0 else f'with status {ended}'}"

    def close(self) -> None:
        """End the sandbox and all that is in it."""
        if self._channel is None:
            return
        self._channel.close()
        self._channel = None
        # one that ended at a limit says so, and one that does not end is stopped
        self._thread.join(0.2)
        self._stop.set()
        self._thread.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="trace-dataset-evaluate-"))
        # the sandbox runs as another user where we are root
        self._folder.chmod(0o755)
        told, work = self._folder / "told", self._folder / "work"
        told.mkdir()
        work.mkdir()
        for name in _WORKER:
            shutil.copy(_PROJECT / name, told)
        here, there = pair()
        base = CUDA_LIMITS if self.device == "cuda" else Limits()
        limits = replace(
            base,
            wall_seconds=_WALL_SECONDS,
            cpu_seconds=24 * 3600,
            memory_bytes=max(base.memory_bytes, self.allowed.memory_bytes),
        )
        worker = os.path.realpath(told / "worker.py")
        command = [sys.executable, "-s", "-B", worker, str(there.fileno()), self.device]
        self._stop, self._outcome = threading.Event(), None

        def confine() -> None:
            self._outcome = run_confined(
                command,
                read_only=[told],
                work=work,
                limits=limits,
                environment={"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
                devices=self.device == "cuda",
                hidden=self._hidden,
                channel=there.fileno(),
                stop=self._stop,
            )
            there.close()

        self._thread = threading.Thread(target=confine, daemon=True)
        self._thread.start()
        self._channel = here
        try:
            _, self.pid = received(here, _START_SECONDS)
        except (OSError, EOFError, Garbled) as error:
            self.close()
            outcome = self._outcome
            why = outcome.detail or outcome.stderr or outcome.limit if outcome else ""
            said = one_line(why or type(error).__name__, _SHORT)
            raise Failure(f"no sandbox for solutions: {said}.") from error
