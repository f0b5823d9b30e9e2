"""Process settings: children that end with their parent, memory that others can't read."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36
# the process that adopts orphans; its forks inherit the variable, not the role
_adopter = 0


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


def end_orphans(spared: Collection[int]) -> None:
    """End all children of this process except `spared`, if it adopts orphans.

    A process in a session of its own does not end with its child's group.
    """
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    with suppress(OSError):
        while os.getpid() == _adopter:
            orphans = set(map(int, children.read_text().split())) - set(spared)
            if not orphans:
                return
            for pid in orphans:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def lives(pid: int) -> bool:
    """Return whether a process is there, and no zombie that nobody has waited for."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


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
