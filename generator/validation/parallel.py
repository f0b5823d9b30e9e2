"""Check units in order, in this process or in several."""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

from generator.validation.definition_check import (
    CheckedDefinition,
    DefinitionFiles,
    check_unit,
)

_CHUNK = 32
"""Units of one task: passing a task takes about as long as checking a small unit."""

_FEW = 256
"""Fewer units are checked sooner than processes are started."""

_AHEAD = 4
"""Tasks a process may be ahead of the reader, so that results don't pile up."""

Checked = Iterator[tuple[DefinitionFiles, CheckedDefinition]]
"""Units in order, each with its outcome."""


def default_jobs() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def outcomes(
    root: Path,
    units: Sequence[DefinitionFiles],
    config: Mapping[str, Any] | None,
    jobs: int,
) -> Checked:
    """Yield each unit with its outcome, in order; memory does not grow with them."""
    if jobs < 2 or len(units) < _FEW:
        return ((unit, check_unit(root, unit, config)) for unit in units)
    return _in_processes(root, units, config, jobs)


def _in_processes(
    root: Path,
    units: Sequence[DefinitionFiles],
    config: Mapping[str, Any] | None,
    jobs: int,
) -> Checked:
    import multiprocessing
    from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor

    # small datasets in smaller tasks, so that every process has some
    size = max(1, min(_CHUNK, len(units) // (4 * jobs)))
    waiting: deque[tuple[Sequence[DefinitionFiles], Future[list[CheckedDefinition]]]]
    waiting = deque()

    def oldest() -> Checked:
        chunk, task = waiting.popleft()
        yield from zip(chunk, task.result(), strict=True)

    # fork shares what is imported; elsewhere threads may hold locks, so spawn
    method = "fork" if sys.platform == "linux" else "spawn"
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(jobs, context, _leave_interrupts) as pool:
        try:
            for at in range(0, len(units), size):
                chunk = units[at : at + size]
                waiting.append((chunk, pool.submit(_task, root, chunk, config)))
                if len(waiting) >= jobs * _AHEAD:
                    yield from oldest()
            while waiting:
                yield from oldest()
        except BrokenExecutor as error:
            # killed, most likely for memory that others use
            what = "a process ended before its work was done; try --jobs 1"
            raise OSError(None, what) from error
        finally:
            for _, task in waiting:
                task.cancel()


def _leave_interrupts() -> None:
    """Leave Ctrl-C to the parent: it cancels what is waiting."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _task(
    root: Path, units: Sequence[DefinitionFiles], config: Mapping[str, Any] | None
) -> list[CheckedDefinition]:
    """Check some units in a process of its own."""
    return list(map(check_unit, repeat(root), units, repeat(config)))
