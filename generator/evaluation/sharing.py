"""Share the GPUs of a machine among tasks, of this command and of others of the user."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from generator.execution.gpus import bind

_ASKS_AGAIN_SECONDS = 0.02


def free_gpu(gpus: Sequence[str]) -> str:
    """Return the first of the names that no other task has; this process keeps it.

    A name that comes more than once is for so many tasks.
    """
    for place, name in enumerate(gpus):
        file = _opened(f"{place}-{name}")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            continue
        # until the end of this process, which runs one task
        return name
    return gpus[0]


@cache
def bind_to_a_free_gpu(gpus: tuple[str, ...]) -> None:
    """Give this process one of the GPUs, for all of its tasks."""
    bind(free_gpu(gpus))


@contextmanager
def using(gpu: str, is_alone: bool, alive: Callable[[], None]) -> Iterator[None]:
    """Use a GPU while nobody times on it; with `is_alone`, while nobody else uses it.

    `alive` is called again and again until it is free. No name is no GPU.
    """
    if not gpu:
        yield
        return
    how = fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH
    file, turn = _opened(f"used-{gpu}"), _opened(f"turn-{gpu}")
    try:
        try:
            # who waits to be alone comes before those who ask later
            _lock(turn, fcntl.LOCK_EX, alive)
            _lock(file, how, alive)
        finally:
            os.close(turn)
        yield
    finally:
        os.close(file)


def _lock(file: int, how: int, alive: Callable[[], None]) -> None:
    while True:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
            return
        except OSError:
            alive()
            time.sleep(_ASKS_AGAIN_SECONDS)


def _opened(name: str) -> int:
    folder = Path(tempfile.gettempdir()) / f"trace-dataset-gpus-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    return os.open(folder / name.replace("/", "_"), os.O_CREAT | os.O_RDWR, 0o600)
