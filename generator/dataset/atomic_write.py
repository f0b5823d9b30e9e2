"""Write a file whole or not at all, and never through a link of a dataset."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

from generator.dataset.file_reading import folder_below, opened

_STEP = 1024 * 1024
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that the user named; links on the way to its folder are followed.

    A reader, or a kill, sees the old file or the new one. Raises OSError with the
    file's own name, whichever step failed.
    """
    write_below(path.parent, path.name, content)


def write_below(root: Path, path: str, content: bytes) -> None:
    """Write a file of a folder whose content is not trusted, `path` relative to `root`.

    A link between `root` and the file is an OSError; a link in the place of the file
    itself is replaced. The temporary file has a name that nobody can know before, and
    must not exist. A reader, or a kill, sees the old file or the new one.
    """
    folder, _, name = path.rpartition("/")
    try:
        root.mkdir(parents=True, exist_ok=True)
        with folder_below(root, folder, make=True) as place:
            _write(place, name, [content])
    except OSError as error:
        # a full disk names no file, and nobody knows the temporary one
        why = error.strerror
        if isinstance(error, FileExistsError):
            why = "a file is in the place of its folder"
        raise OSError(error.errno, why, str(root / path)) from error


def move_below(root: Path, source: str, target: str) -> None:
    """Move a file of a folder to another place in it; a file that lies there is replaced.

    Neither way leads through a link. Where the two lie on different disks, it is copied.
    Raises OSError.
    """
    folders = [path.rpartition("/")[0] for path in (source, target)]
    names = [path.rpartition("/")[2] for path in (source, target)]
    with (
        folder_below(root, folders[0]) as old,
        folder_below(root, folders[1], make=True) as new,
    ):
        try:
            os.replace(*names, src_dir_fd=old, dst_dir_fd=new)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            with opened(root, source) as descriptor:
                _write(new, names[1], iter(partial(os.read, descriptor, _STEP), b""))
            os.unlink(names[0], dir_fd=old)


def remove_below(root: Path, path: str) -> None:
    """Remove a file of a folder whose content is not trusted. Raises OSError."""
    folder, _, name = path.rpartition("/")
    with folder_below(root, folder) as place:
        os.unlink(name, dir_fd=place)


def _write(place: int, name: str, pieces: Iterable[bytes]) -> None:
    temporary = f".{name}.{secrets.token_hex(8)}.tmp"
    # the longest name of a file leaves no room for more
    temporary = temporary if len(os.fsencode(temporary)) < 256 else temporary[-21:]
    descriptor = os.open(temporary, _NEW, 0o666, dir_fd=place)
    try:
        try:
            for piece in pieces:
                left = memoryview(piece)
                while left:
                    left = left[os.write(descriptor, left) :]
        finally:
            os.close(descriptor)
        os.replace(temporary, name, src_dir_fd=place, dst_dir_fd=place)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=place)
        raise
