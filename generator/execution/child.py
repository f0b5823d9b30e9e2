"""A forked child for code that may hang, grow or die, and the link to it."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from generator.execution.limits import die_with_parent
from generator.execution.task import Event

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

    @property
    def has_event(self) -> bool:
        """Return whether an event came that was not received yet."""
        return b"\n" in self._text

    def receive(self, seconds: float | None = None) -> Event | None:
        """Return the next event; None where the other end is gone, or silent that long.

        `silent` tells the two apart; `garbled` says that something else than an event came.
        """
        until = None if seconds is None else time.monotonic() + seconds
        while not self.has_event:
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


def with_events(links: Sequence[Link], seconds: float) -> list[Link]:
    """Return the links that have an event or ended; wait at most `seconds`."""
    ready = [link for link in links if link.has_event]
    return ready or list(select.select(links, [], [], max(seconds, 0.0))[0])


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
        self._pid = _fork()
        if self._pid:
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
            die_with_parent()
            if os.getppid() != own:
                # the parent is gone already
                os._exit(1)
            work(Link(there))
            os._exit(0)
        finally:
            os._exit(1)

    def close(self) -> None:
        """End the child and all that it began."""
        self._end()
        self.link.close()

    def how_it_ended(self) -> str:
        """Return why there are no more events: `ended its process with status 3`."""
        if self.link.silent:
            return "did not answer any more"
        if self.link.garbled:
            return "wrote to the connection of the process that runs it"
        # it closed its end and is about to end: wait, but not for long
        until = time.monotonic() + _LEAVING_SECONDS
        while self._status is None and time.monotonic() < until:
            self._wait(os.WNOHANG)
            time.sleep(0.005)
        code = os.waitstatus_to_exitcode(self._end())
        return f"ended its process {by_status(code)}"

    def _end(self) -> int:
        """Kill the child and its children, once; return its status."""
        if not self._killed:
            self._killed = True
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
            if self._status is None:
                # one that has no group of its own yet
                with suppress(ProcessLookupError):
                    os.kill(self._pid, signal.SIGKILL)
        self._wait()
        assert self._status is not None
        return self._status

    def _wait(self, how: int = 0) -> None:
        if self._status is None:
            pid, status = os.waitpid(self._pid, how)
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
