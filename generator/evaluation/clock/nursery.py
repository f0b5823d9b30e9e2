"""Begin the processes of rivals: forks of one that imported torch, or an interpreter of their own.

To import torch and what reads definitions takes some seconds of a process, and each kind of rival
has one of its own. So a worker forks a nursery before its first task on a GPU, while it
has neither CUDA nor threads, which a fork would lose; each rival is a fork of that, and
there at once. It ends with the nursery, and that with the worker, however it ends.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol

import torch

import generator
from generator.evaluation.clock.rival import serve
from generator.evaluation.frames import Garbled, receive, send
from generator.execution.child import Child, Link, may_fork
from generator.execution.processes import safe_environment, start_python


class RivalProcess(Protocol):
    """A rival's process, as its judge sees it."""

    @property
    def pid(self) -> int:
        """Return its number."""

    def kill(self) -> None:
        """Let it end."""

    def close(self) -> None:
        """End it, and wait until it has left."""


class StartedRival:
    """An interpreter of its own, which serves a channel."""

    def __init__(self, channel: socket.socket) -> None:
        above = str(Path(generator.__file__).resolve().parents[1])
        self._process = start_python(
            ["-m", __package__ + ".rival", str(channel.fileno())],
            environment=safe_environment(paths=[above]),
            pass_fds=[channel.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.pid = self._process.pid

    def kill(self) -> None:
        """Let it end."""
        self._process.kill()

    def close(self) -> None:
        """End it, and wait until it has left."""
        self._process.kill()
        self._process.wait()


class ForkedRival:
    """A fork of the nursery, which ends it when that is asked."""

    _is_closed = False

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self._nursery, self.pid = nursery, pid

    def kill(self) -> None:
        """Let it end: its number is its own until the nursery has waited for it."""
        if not self._is_closed:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """End it, and wait until it has left."""
        self._is_closed = True
        self._nursery.end(self.pid)


class Nursery:
    """A process that forks rivals, itself a fork of this one.

    Only a process without threads that has not used CUDA may make one.
    """

    def __init__(self) -> None:
        self._channel, there = socket.socketpair()
        with there:
            self._child = Child(partial(_tend, there, self._channel))

    def begin(self, channel: socket.socket) -> RivalProcess:
        """Return a process that serves a channel; a started one where it can't fork."""
        try:
            send(self._channel, {"begin": True}, [channel.fileno()])
            frame, _ = receive(self._channel)
            return ForkedRival(self, int(frame["pid"]))
        except (OSError, EOFError, Garbled, LookupError):
            return StartedRival(channel)

    def end(self, pid: int) -> None:
        """End a fork and all that it began."""
        try:
            send(self._channel, {"end": pid})
            receive(self._channel)
        except (OSError, EOFError, Garbled):
            # it is gone, and its forks with it
            self.close()

    def close(self) -> None:
        """End it, and all of its forks."""
        self._channel.close()
        self._child.close()


_ours: list[Nursery] = []


def prepare() -> None:
    """Make the nursery of this process, before its first task: later it has threads."""
    if not _ours and len(os.listdir("/proc/self/task")) == 1:
        _ours.append(Nursery())


def begin(channel: socket.socket) -> RivalProcess:
    """Return a process that serves a channel: a fork where there is a nursery."""
    return _ours[0].begin(channel) if _ours else StartedRival(channel)


def _tend(channel: socket.socket, judges: socket.socket, _: Link) -> None:
    """Fork rivals until the judge's end is closed."""
    judges.close()
    if torch.cuda._is_in_bad_fork():
        # CUDA was used before: nothing that is forked here could use it
        return
    forks: dict[int, Child] = {}
    try:
        while True:
            frame, files = receive(channel)
            if "end" in frame:
                forks.pop(frame["end"]).close()
                send(channel, {"done": True})
                continue
            with socket.socket(fileno=files[0]) as end:
                child = Child(partial(_be, end, channel))
            forks[child.pid] = child
            send(channel, {"pid": child.pid})
    except (EOFError, OSError):
        pass
    finally:
        for one in forks.values():
            one.close()


def _be(end: socket.socket, nurserys: socket.socket, _: Link) -> None:
    """Be a rival's process, which may fork, as a process that was started may."""
    nurserys.close()
    may_fork()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.close(null)
    serve(end)
