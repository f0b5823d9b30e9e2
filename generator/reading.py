"""Read files that may be anything: no more than is wanted, in a buffer of their size."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def opened(path: str | Path) -> Iterator[int]:
    """Yield a descriptor that reads a file; a pipe without a writer does not wait."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_at_most(descriptor: int, most: int) -> bytes:
    """Return the first bytes of a regular file, at most `most`.

    A buffer of `most` bytes costs more than reading a small file does.
    """
    wanted = min(most, os.fstat(descriptor).st_size + 1)
    data = os.read(descriptor, wanted)
    while len(data) == wanted < most:  # it has grown meanwhile
        wanted = min(most, 2 * wanted)
        data += os.read(descriptor, wanted - len(data))
    return data
