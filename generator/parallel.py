"""Check units in order, in this process or in several, each answer from the cache."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from generator.cache import Cache
from generator.unit import Outcome, Unit, check_unit

_CHUNK = 32
"""Units of one task: passing a task takes about as long as checking a small unit."""

_WORTH_IT = 8 * _CHUNK
"""Fewer units are checked sooner than processes are started."""

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
    if jobs < 2 or len(units) < _WORTH_IT:
        for unit in units:
            outcome, key = _check(root, unit, config, cache)
            if cache is not None and key is not None:
                cache.put(key, outcome)
            yield unit, outcome
    else:
        yield from _in_processes(root, units, config, cache, jobs)
    if cache is not None:
        cache.save()


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
    cache: Cache | None,
    jobs: int,
) -> Iterator[tuple[Unit, Outcome]]:
    import multiprocessing
    from concurrent.futures import Future, ProcessPoolExecutor

    chunks = (units[at : at + _CHUNK] for at in range(0, len(units), _CHUNK))
    waiting: deque[tuple[Sequence[Unit], Future[list[Checked]]]] = deque()
    # fork shares what is imported; elsewhere threads may hold locks, so spawn
    method = "fork" if sys.platform == "linux" else "spawn"
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        try:
            for chunk in chunks:
                path = cache.path if cache is not None else None
                waiting.append((chunk, pool.submit(_task, root, chunk, config, path)))
                if len(waiting) >= jobs * _AHEAD:
                    yield from _done(*waiting.popleft(), cache)
            while waiting:
                yield from _done(*waiting.popleft(), cache)
        finally:
            for _, future in waiting:
                future.cancel()


def _done(
    chunk: Sequence[Unit], future: Any, cache: Cache | None
) -> Iterator[tuple[Unit, Outcome]]:
    for unit, (outcome, key) in zip(chunk, future.result(), strict=True):
        if cache is not None and key is not None:
            cache.put(key, outcome)
        yield unit, outcome


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
