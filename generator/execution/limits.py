"""What a task may take: time, memory; and what ends with a process."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36
# after the first alarm: a mutant that catches everything gets it again and again
_AGAIN_SECONDS = 0.25
# beside what a definition's cases need
MORE_BYTES = 2 * 2**30
_STATUS = Path("/proc/self/statm")
# the process that adopts orphans; its forks inherit the variable, not the role
_adopter = 0


class TimeIsUp(BaseException):
    """Interrupt a mutant, `seconds` after it began; `except Exception` lets it pass."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"more than {seconds:.1f} s")


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeIsUp in a block that takes more seconds of this process's CPU.

    So other work on the machine costs a mutant nothing. The parent process ends a
    block that does not return to Python, or sleeps.
    """

    def ring(number: int, frame: FrameType | None) -> None:
        raise TimeIsUp(seconds)

    old = signal.signal(signal.SIGPROF, ring)
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds, _AGAIN_SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
    finally:
        signal.signal(signal.SIGPROF, old)


def limit_memory(more_bytes: int) -> None:
    """Limit what this process maps beyond what it has now; more raises MemoryError."""
    try:
        pages = int(_STATUS.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        # no limit is better than one that is too low
        return
    limit = pages * resource.getpagesize() + more_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def die_with_parent(parent: int) -> None:
    """End with the process that started this one, where the system can do that."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # gone already
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of processes whose own has ended, where the system can."""
    global _adopter
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _adopter = os.getpid()


def end_orphans(kept: Collection[int]) -> None:
    """End all children of this process except `kept`, if it adopts orphans.

    A process in a session of its own does not end with its child's group.
    """
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    with suppress(OSError):
        while os.getpid() == _adopter:
            orphans = set(map(int, children.read_text().split())) - set(kept)
            if not orphans:
                return
            for pid in orphans:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def hide_memory(*, hidden: bool = True) -> None:
    """Keep others of the same user from this process's memory and open files.

    A fork inherits that, and takes it back with `hidden` False. Raises OSError where
    the system can't do that.
    """
    if not _prctl(_PR_SET_DUMPABLE, int(not hidden)):
        raise OSError("the memory of this process can't be hidden from its user")


def _prctl(option: int, value: int) -> bool:
    """Return whether prctl(2) is there and did it."""
    if not sys.platform.startswith("linux"):
        return False
    done: int = ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)
    return done == 0
