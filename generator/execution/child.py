"""A forked child for code that may hang, grow or die, and the link to it."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from generator.execution.limits import die_with_parent

Event = dict[str, Any]
# descriptors of the ends that this process holds; its children close them
_held: set[int] = set()
# whether a fork that happens now is that of a Child
_forking = False


class Link:
    """Events, lines of JSON, that are sent and received through one end of a connection."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._text = b""
        self.silent = False
        self.garbled = False
        _held.add(end.fileno())

    def fileno(self) -> int:
        """Return the descriptor, for `select`."""
        return self._end.fileno()

    def close(self) -> None:
        """Close the connection."""
        _held.discard(self._end.fileno())
        self._end.close()

    def send(self, event: Event) -> None:
        """Send an event. Raises OSError where the other end is closed."""
        self._end.sendall(json.dumps(event).encode() + b"\n")

    def at(self, where: str = "", within: float | None = None) -> None:
        """Report where the task is; the next report is due `within` seconds."""
        self.send({"event": "at", "where": where, "within": within})

    def say(self, value: Any) -> None:
        """Send a value that counts even if the task does not end well."""
        self.send({"event": "said", "value": value})

    def receive(self, seconds: float | None = None) -> Event | None:
        """Return the next event; None where the other end is gone, or silent that long.

        `silent` tells the two apart; `garbled` says that something other than an event
        came.
        """
        self.silent = False
        while b"\n" not in self._text:
            if not select.select([self], [], [], seconds)[0]:
                self.silent = True
                return None
            more = b""
            with suppress(ConnectionError):
                more = self._end.recv(1 << 16)
            if not more:
                return None
            self._text += more
        line, self._text = self._text.split(b"\n", 1)
        try:
            event: Event = json.loads(line)
            if isinstance(event["event"], str):
                return event
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
        self.garbled = True
        return None

    @property
    def has_event(self) -> bool:
        """Return whether an event has come that was not received yet."""
        return b"\n" in self._text


def by_status(code: int) -> str:
    """Return how a process ended: `with status 3`, or of a negative code `by SIGKILL`."""
    if code >= 0:
        return f"with status {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        # most real-time signals have no name
        return f"by signal {-code}"


class Child:
    """A forked child that works and sends events; it never returns to its parent's code.

    It holds its own end of the link, and no other one of its parent. Whatever it forks
    without this class ends at once: a process that a reference forks would repeat its
    parent's work, and fork again.
    """

    def __init__(self, work: Callable[[Link], None]) -> None:
        here, there = socket.socketpair()
        self._status: int | None = None
        self._is_closed = False
        parent = os.getpid()
        global _forking
        _forking = True
        try:
            self.pid = os.fork()
        finally:
            _forking = False
        if self.pid:
            there.close()
            self.link = Link(here)
            # before it is ended, whichever of the two is faster
            with suppress(OSError):
                os.setpgid(self.pid, self.pid)
            return
        try:
            here.close()
            for descriptor in _held:
                with suppress(OSError):
                    os.close(descriptor)
            _held.clear()
            os.register_at_fork(after_in_child=_end_unless_expected)
            os.setpgid(0, 0)
            die_with_parent(parent)
            work(Link(there))
            os._exit(0)
        finally:
            os._exit(1)

    def close(self, grace: float = 0.0) -> int:
        """End the child and all that it began; return its exit code.

        One that is about to end by itself has `grace` seconds to do so.
        """
        until = time.monotonic() + grace
        while not self._has_ended(os.WNOHANG) and time.monotonic() < until:
            time.sleep(0.005)
        if not self._is_closed:
            self._is_closed = True
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self.link.close()
        self._has_ended()
        assert self._status is not None
        return os.waitstatus_to_exitcode(self._status)

    def _has_ended(self, how: int = 0) -> bool:
        if self._status is None:
            pid, status = os.waitpid(self.pid, how)
            self._status = status if pid else None
        return self._status is not None


def may_fork() -> None:
    """Let what this process forks without a Child go on: it runs no stranger's code."""
    global _forking
    _forking = True


def _end_unless_expected() -> None:
    if not _forking:
        os._exit(0)
