"""The files of one side of a review, as data, and writing them into a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from generator.problems import Failure
from generator.problems.messages import quote

MAX_TOTAL = 4 * 1024 * 1024 * 1024
"""Bytes that are copied for a review at most."""

MAX_FILES = 2_000_000
_DEEPEST = 100
_ODD = re.compile(r"(?i)(^|/)(\.{0,2}|\.git)(/|$)|\0")


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One file of a tree: its mode (100644, 120000 a link, 160000 a submodule)."""

    mode: str
    oid: str

    @property
    def is_file(self) -> bool:
        """Return whether it is an ordinary file."""
        return self.mode.startswith("100")

    @property
    def is_link(self) -> bool:
        """Return whether it is a symbolic link."""
        return self.mode == "120000"


HOLLOW = TreeEntry("100644", "")
"""Stands for a file of which only the name matters: it is written without content."""

Tree = dict[str, TreeEntry]
"""Path relative to the dataset's root → entry; names are decoded by the file system."""


def refused(tree: Tree) -> tuple[str, ...]:
    """Return paths that no checkout would have: upwards, absolute, into .git, twice.

    And those that are deeper than what makes and removes folders one in the other can go.
    """
    links = {path for path, entry in tree.items() if not entry.is_file}
    paths = {p for p in tree if _ODD.search(p) or p.count("/") > _DEEPEST}
    if links:
        paths |= {path for path in tree if not links.isdisjoint(_folders(path))}
    return tuple(sorted(paths))


def _folders(path: str) -> Iterator[str]:
    """Yield the folders that a path lies in."""
    while path := path.rpartition("/")[0]:
        yield path


Blobs = Callable[[Sequence[str]], Iterator[bytes]]
"""Yields the content of each object, one after the other in memory."""


def check_total(size: int) -> None:
    """Raise Failure for more bytes than are copied for a review."""
    if size > MAX_TOTAL:
        raise Failure(
            f"The review needs {size >> 20} MiB, more than the {MAX_TOTAL >> 20} MiB "
            "that are copied for one."
        )


def write_tree(blobs: Blobs, tree: Tree, folder: Path, mode: int = 0o600) -> None:
    """Write the files of a tree below `folder`, with the permissions `mode`.

    Links are made last and lead where they led, so that validation can say so. Raises
    Failure.
    """
    bad = set(refused(tree))
    wanted = [
        path
        for path, entry in tree.items()
        if (entry.is_file or entry.is_link) and path not in bad
    ]
    wanted.sort(key=lambda path: tree[path].is_link)
    contents = blobs([tree[path].oid for path in wanted if tree[path] != HOLLOW])
    folders = set()
    for path in wanted:
        entry, place, parent = tree[path], folder / path, path.rpartition("/")[0]
        content = b"" if entry == HOLLOW else next(contents)
        try:
            if parent not in folders:
                os.makedirs(folder / parent, exist_ok=True)
                folders.add(parent)
            if entry.is_link:
                os.symlink(os.fsdecode(content.replace(b"\0", b"")) or ".", place)
                continue
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
            with open(os.open(place, flags, mode), "wb") as stream:
                stream.write(content)
        except OSError as error:
            reason = error.strerror or "unknown"
            message = f"{quote(path, 200)} can't be written here: {reason}."
            raise Failure(message) from None
