"""Check units in order, in this process or in several, each answer from the cache."""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from generator.cache import Cache
from generator.outcome import Outcome, Unit

_CHUNK = 32
"""Units of one task: passing a task takes about as long as checking a small unit."""

_FEW = 256
"""Fewer units are checked sooner than processes are started."""

_MANY = 512
"""From here on the processes ask the cache; below, starting them would cost more."""

_AHEAD = 4
"""Tasks a process may be ahead of the reader, so that results don't pile up."""

Checked = tuple[Outcome, str | None]
"""An outcome, and the key under which the cache should keep it; None if it does."""


def default_jobs() -> int:
    """Return how many processes this machine can run at a time."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def outcomes(
    root: Path,
    units: Sequence[Unit],
    config: Mapping[str, Any] | None,
    cache: Cache | None,
    jobs: int,
) -> Iterator[tuple[Unit, Outcome]]:
    """Yield each unit with its outcome, in order; memory does not grow with them."""
    checked: Iterator[tuple[Unit, Checked]]
    if jobs < 2 or len(units) < _FEW:
        checked = ((u, _check(root, u, config, cache)) for u in units)
    elif cache is None or len(units) >= _MANY:
        path = cache.path if cache is not None else None
        checked = _in_processes(root, units, config, path, jobs)
    else:
        checked = _first_the_cache(root, units, config, cache, jobs)
    for unit, (outcome, key) in checked:
        if cache is not None and key is not None:
            cache.put(key, outcome)
        yield unit, outcome
    if cache is not None:
        cache.save()


def check_unit(root: Path, unit: Unit, config: Mapping[str, Any] | None) -> Outcome:
    """Check a unit; the rules are imported once one is not in the cache."""
    from generator.unit import check_unit

    return check_unit(root, unit, config)


def _first_the_cache(
    root: Path,
    units: Sequence[Unit],
    config: Mapping[str, Any] | None,
    cache: Cache,
    jobs: int,
) -> Iterator[tuple[Unit, Checked]]:
    """Start processes only for what the cache does not know."""
    keys = [cache.key(root, unit, config) for unit in units]
    known = [cache.get(root, key) if key is not None else None for key in keys]
    missing = [u for u, outcome in zip(units, known, strict=True) if outcome is None]
    fresh: Iterator[tuple[Unit, Checked]]
    if len(missing) < _FEW:
        fresh = ((unit, (check_unit(root, unit, config), None)) for unit in missing)
    else:
        fresh = _in_processes(root, missing, config, None, jobs)
    for unit, key, outcome in zip(units, keys, known, strict=True):
        if outcome is not None:
            yield unit, (outcome, None)
        else:
            _, (found, _) = next(fresh)
            yield unit, (found, key)


def _check(
    root: Path, unit: Unit, config: Mapping[str, Any] | None, cache: Cache | None
) -> Checked:
    if cache is None:
        return check_unit(root, unit, config), None
    key = cache.key(root, unit, config)
    known = cache.get(root, key) if key is not None else None
    if known is not None:
        return known, None
    return check_unit(root, unit, config), key


def _in_processes(
    root: Path,
    units: Sequence[Unit],
    config: Mapping[str, Any] | None,
    cache_path: Path | None,
    jobs: int,
) -> Iterator[tuple[Unit, Checked]]:
    import multiprocessing
    from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor

    # before there are processes, which share it then
    import generator.unit  # noqa: F401

    # small datasets in smaller tasks, so that every process has some
    size = max(1, min(_CHUNK, len(units) // (4 * jobs)))
    chunks = (units[at : at + size] for at in range(0, len(units), size))
    waiting: deque[tuple[Sequence[Unit], Future[list[Checked]]]] = deque()
    # fork shares what is imported; elsewhere threads may hold locks, so spawn
    method = "fork" if sys.platform == "linux" else "spawn"
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(jobs, context, _leave_interrupts) as pool:
        try:
            for chunk in chunks:
                task = pool.submit(_task, root, chunk, config, cache_path)
                waiting.append((chunk, task))
                if len(waiting) >= jobs * _AHEAD:
                    chunk, task = waiting.popleft()
                    yield from zip(chunk, task.result(), strict=True)
            while waiting:
                chunk, task = waiting.popleft()
                yield from zip(chunk, task.result(), strict=True)
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


_worker_caches: dict[Path, Cache] = {}


def _task(
    root: Path,
    units: Sequence[Unit],
    config: Mapping[str, Any] | None,
    cache_path: Path | None,
) -> list[Checked]:
    """Check some units in a process of its own; the parent writes to the cache."""
    cache = None
    if cache_path is not None:
        cache = _worker_caches.setdefault(cache_path, Cache(cache_path))
    return [_check(root, unit, config, cache) for unit in units]
