"""The tree of processes below one, what it uses, and its end, as /proc shows it."""

from __future__ import annotations

import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True)
class Use:
    """What processes use together: threads, and resident memory in bytes."""

    threads: int
    memory_bytes: int


def descendants(process: int, proc: int | None = None) -> list[int]:
    """Return the processes below one, children before their own children.

    `proc` is an open /proc, for who has left the file system that shows it.
    """
    children = defaultdict(list)
    if proc is not None:
        parents = _parents(proc)
    else:
        proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
        try:
            parents = _parents(proc)
        finally:
            os.close(proc)
    for child, parent in parents:
        children[parent].append(child)
    found: list[int] = []
    waiting = [process]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def bury(found: Callable[[], Iterable[int]], seconds: float) -> None:
    """Kill what `found` returns and wait for children, until there are none left.

    Asks again while there are some, since what dies may leave its own children to this
    process. Gives up after so many seconds.
    """
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for process in found():
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def use_of(processes: list[int]) -> Use:
    """Return what processes use; those that ended meanwhile use nothing."""
    threads = memory = 0
    for process in processes:
        fields = _stat(f"/proc/{process}/stat")
        if fields is not None and len(fields) > 21:
            threads += int(fields[17])
            memory += int(fields[21]) * _PAGE
    return Use(threads, memory)


def _parents(proc: int) -> list[tuple[int, int]]:
    found = []
    for name in os.listdir(proc):
        if name.isdecimal() and (fields := _stat(f"{name}/stat", proc)) is not None:
            found.append((int(name), int(fields[1])))
    return found


def _stat(path: str, proc: int | None = None) -> list[str] | None:
    """Return the fields from the state on; the name before may hold anything."""
    try:
        file = os.open(path, os.O_RDONLY, dir_fd=proc)
    except OSError:
        return None
    try:
        text = os.read(file, 4096)
    except OSError:
        return None
    finally:
        os.close(file)
    return text[text.rindex(b")") + 2 :].decode().split()
