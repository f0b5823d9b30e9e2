"""Read files that may be anything: no more bytes than are wanted."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from generator.problems import Problem, blocking
from generator.problems.messages import one_line

FILE_UNREADABLE = blocking("""file-unreadable: The operating system refuses to open or
    read the file.
    Fix: Check that the file exists and that you may read it.
    Finds: a definition that another user owns, with the permissions 600""")
FILE_NOT_REGULAR = blocking("""file-not-regular: There is a folder or a device where a
    file should be.
    Fix: Replace it with a file.
    Finds: a folder that is named gemm_n8_k4.json""")
FILE_TOO_LARGE = blocking("""file-too-large: The file is larger than any real one; it is
    not read.
    Fix: Move large data into blob/ and point to it.
    Finds: a definition of 200 MiB""")
FILE_LFS_POINTER = blocking("""file-lfs-pointer: The file is a Git LFS pointer, not the
    data itself.
    Fix: Fetch the data with `git lfs pull`.
    Finds: `version https://git-lfs.github.com/spec/v1` instead of JSON""")

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


def read_text_file(path: Path, file: str, max_bytes: int) -> bytes | Problem:
    """Return the bytes of the file at `path`, or the Problem of `file` that says why not."""
    try:
        status = os.stat(path)
        # Asked before opening: opening a FIFO would wait for a writer.
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a device or a pipe"
            return FILE_NOT_REGULAR.problem(file, f"This is {kind}, not a file.")
        size, data = status.st_size, b""
        if size <= max_bytes:
            with opened(path) as descriptor:
                data = read_at_most(descriptor, max_bytes + 1)
            size = len(data)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"The file can't be read: {one_line(reason)}."
        return FILE_UNREADABLE.problem(file, message)
    if size > max_bytes:
        message = f"The file has at least {size / 2**20:.1f} MiB, more than the "
        message += f"{max_bytes / 2**20:.0f} MiB that are read."
        return FILE_TOO_LARGE.problem(file, message)
    if data.startswith(LFS_MAGIC):
        message = "The file is a Git LFS pointer: the data itself was not fetched."
        return FILE_LFS_POINTER.problem(file, message)
    return data
