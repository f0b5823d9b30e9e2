"""Read files that may be anything: no more bytes than are wanted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LFS_MAGIC = b"version https://git-lfs"
"""The beginning of a Git LFS pointer: what a clone without LFS has for a large file."""


@contextmanager
def opened(path: str | Path) -> Iterator[int]:
    """Yield a descriptor that reads a file; does not wait for the writer of a pipe."""
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
    while len(data) == wanted < most:  # the file has grown meanwhile
        wanted = min(most, 2 * wanted)
        data += os.read(descriptor, wanted - len(data))
    return data
