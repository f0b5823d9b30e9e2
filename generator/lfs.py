"""Git LFS pointers: the small text files that a clone without LFS has for large ones."""

from __future__ import annotations

from pathlib import Path

LFS_MAGIC = b"version https://git-lfs"


def is_lfs_pointer(path: Path) -> bool:
    """Return whether the file is a Git LFS pointer; raises OSError if unreadable."""
    with path.open("rb") as stream:
        return stream.read(len(LFS_MAGIC)) == LFS_MAGIC
