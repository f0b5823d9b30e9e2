"""Time and memory limits of a mutant."""

from __future__ import annotations

import ctypes
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

# after the first alarm: a mutant that catches everything gets it again and again
_AGAIN_SECONDS = 0.25
# beside what a definition's cases need
MORE_BYTES = 2 * 2**30
# of malloc.h: how much freed memory at its end goes back, and how many parts of the
# memory are the system's own
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_STATUS = Path("/proc/self/statm")


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


def passing_bytes() -> int:
    """Return how much more memory this process once had than it has now, in bytes."""
    try:
        pages = int(_STATUS.read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return max(0, most * 1024 - pages * resource.getpagesize())


def keep_freed_memory() -> None:
    """Let malloc use again what large tensors leave, where it is glibc's.

    Of the system each one would be new memory, which it fills with zeros first.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_MMAP_MAX, 0)
        ctypes.CDLL(None).mallopt(_M_TRIM_THRESHOLD, -1)


def give_back_freed_memory() -> None:
    """Give back to the system what malloc has of freed memory, where it is glibc's.

    Before forks: they would copy it, page by page, where they use it again.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


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
