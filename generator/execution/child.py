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
# ends of connections that this process holds; its children close them
_held: set[int] = set()
_LEAVING_SECONDS = 0.5
# whether a fork that happens now is that of a Child
_forking = False


def keep_to_oneself(descriptor: int) -> int:
    """Return a descriptor that the children of this process close."""
    _held.add(descriptor)
    return descriptor


class Link:
    """Send and receive events, lines of JSON, through one end of a connection."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._text = b""
        self.silent = False
        self.garbled = False
        keep_to_oneself(end.fileno())

    def fileno(self) -> int:
        """Return the descriptor, so that `select` takes a link."""
        return self._end.fileno()

    def close(self) -> None:
        """Let the connection go."""
        _held.discard(self._end.fileno())
        self._end.close()

    def send(self, event: Event) -> None:
        """Send an event. Raises OSError where nobody is there any more."""
        self._end.sendall(json.dumps(event).encode() + b"\n")

    def at(self, where: str = "", within: float | None = None) -> None:
        """Give a sign of life: where the task is, and when the next one is due."""
        self.send({"event": "at", "where": where, "within": within})

    def say(self, value: Any) -> None:
        """Send a value that counts even if the task does not end well."""
        self.send({"event": "said", "value": value})

    def receive(self, seconds: float | None = None) -> Event | None:
        """Return the next event; None where the other end is gone, or silent that long.

        `silent` tells the two apart; `garbled` says that something else than an event came.
        """
        until = None if seconds is None else time.monotonic() + seconds
        self.silent = False
        while b"\n" not in self._text:
            left = None if until is None else max(until - time.monotonic(), 0.0)
            if not select.select([self], [], [], left)[0]:
                self.silent = True
                return None
            try:
                more = self._end.recv(1 << 16)
            except ConnectionError:
                return None
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
        # something else than this package wrote to it
        self.garbled = True
        return None

    @property
    def has_event(self) -> bool:
        """Return whether an event came that was not received yet."""
        return b"\n" in self._text


def by_status(code: int) -> str:
    """Return how a process ended: `with status 3`, or of a negative code `by SIGKILL`."""
    if code >= 0:
        return f"with status {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        # one of the real-time signals has a name, the others have not
        return f"by signal {-code}"


class Child:
    """Fork a child that works and sends events; it never returns to its parent's code.

    It gets its own end of the link, and no other one that its parent holds. Whatever it
    forks otherwise ends at once: what a reference forks would go on with its parent's
    work, a second time, and fork again.
    """

    def __init__(self, work: Callable[[Link], None]) -> None:
        here, there = socket.socketpair()
        self._status: int | None = None
        self._killed = False
        own = os.getpid()
        self.pid = _fork()
        if self.pid:
            there.close()
            self.link = Link(here)
            return
        # the child: whatever happens, it never returns to the code of its parent
        try:
            here.close()
            for descriptor in _held:
                with suppress(OSError):
                    os.close(descriptor)
            _held.clear()
            os.register_at_fork(after_in_child=_end_unless_expected)
            os.setpgid(0, 0)
            die_with_parent(own)
            work(Link(there))
            os._exit(0)
        finally:
            os._exit(1)

    def close(self) -> int:
        """End the child and all that it began; return its exit code, once."""
        if not self._killed:
            self._killed = True
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            if self._status is None:
                # one that has no group of its own yet
                with suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)
            self.link.close()
        self._wait()
        assert self._status is not None
        return os.waitstatus_to_exitcode(self._status)

    def exit_code(self) -> int:
        """Return the exit code of a child that closed its end and is about to end."""
        until = time.monotonic() + _LEAVING_SECONDS
        while self._status is None and time.monotonic() < until:
            self._wait(os.WNOHANG)
            time.sleep(0.005)
        return self.close()

    def _wait(self, how: int = 0) -> None:
        if self._status is None:
            pid, status = os.waitpid(self.pid, how)
            self._status = status if pid else None


def _fork() -> int:
    global _forking
    _forking = True
    try:
        return os.fork()
    finally:
        _forking = False


def _end_unless_expected() -> None:
    if not _forking:
        os._exit(0)
