"""The files of both sides of a review, compared, and written into folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from generator.dataset.paths import is_dataset, is_rendered
from generator.problems import Failure
from generator.problems.messages import quote

RECORDINGS = "blob/ground_truth/"
MAX_TOTAL = 4 * 1024 * 1024 * 1024
"""Bytes that are copied out of git's objects at most."""

MAX_FILES = 2_000_000


class GitError(Failure):
    """Say in one line why git has no answer, and what to do."""


@dataclass(frozen=True)
class TreeEntry:
    """Hold one file of a tree: its mode (100644, 120000 a link, 160000 a submodule)."""

    mode: str
    oid: str
    size: int

    @property
    def is_file(self) -> bool:
        """Return whether it is an ordinary file."""
        return self.mode.startswith("100")

    @property
    def is_link(self) -> bool:
        """Return whether it is a symbolic link."""
        return self.mode == "120000"


Tree = dict[str, TreeEntry]
"""Path relative to the dataset's root → entry; names are decoded by the file system."""


@dataclass(frozen=True)
class Sides:
    """Hold the files of both sides: path below the dataset's root → object id.

    `base` and `head` are what git has, or the same computed from the working tree.
    `refused` are paths of either side that no checkout would have.
    """

    base: Tree
    head: Tree
    refused: tuple[str, ...] = ()

    @cached_property
    def changed(self) -> frozenset[str]:
        """Return the paths whose content or kind is not the same on both sides."""
        base, head = (
            {(path, entry.oid, entry.mode[:2]) for path, entry in side.items()}
            for side in (self.base, self.head)
        )
        return frozenset(path for path, *_ in base ^ head)


def refused(tree: Tree) -> tuple[str, ...]:
    """Return paths that no checkout would have: upwards, absolute, into .git, twice."""
    found = []
    links = {path for path, entry in tree.items() if not entry.is_file}
    for path in tree:
        parts = path.split("/")
        odd = any(p in ("", ".", "..") or p.casefold() == ".git" for p in parts)
        below = any("/".join(parts[:n]) in links for n in range(1, len(parts)))
        if odd or below or "\0" in path:
            found.append(path)
    return tuple(sorted(found))


Blobs = Callable[[Sequence[str]], Iterator[bytes]]
"""Yields the content of each object, one after the other in memory."""


def write_tree(
    blobs: Blobs, tree: Tree, folder: Path, hollow: Collection[str] = ()
) -> None:
    """Write the dataset's files of a tree below `folder`, which is made.

    Those of `hollow` are written without content. Links are made last and lead where
    they led, so that validation can say so. Raises GitError where there is too much.
    """
    bad = set(refused(tree))
    wanted = {
        path: entry
        for path, entry in tree.items()
        if (is_dataset(path) or is_rendered(path)) and path not in bad
    }
    files = [path for path, entry in wanted.items() if entry.is_file]
    full = [path for path in files if path not in hollow]
    total = sum(wanted[path].size for path in full)
    if total > MAX_TOTAL or len(files) > MAX_FILES:
        raise GitError(
            f"The tree has {len(files)} files of {total >> 20} MiB, more than the "
            f"{MAX_TOTAL >> 20} MiB that are copied for a review."
        )
    links = [path for path, entry in wanted.items() if entry.is_link]
    folders = {path.rpartition("/")[0] for path in (*files, *links)}
    for parent in ("", *sorted(folders)):
        with _said_of(parent, "made"):
            os.makedirs(folder / parent, exist_ok=True)
    for path in files:
        if path in hollow:
            _write(folder, path, b"")
    contents = blobs([wanted[path].oid for path in full])
    for path, content in zip(full, contents, strict=True):
        _write(folder, path, content)
    targets = blobs([wanted[path].oid for path in links])
    for path, target in zip(links, targets, strict=True):
        os.symlink(os.fsdecode(target.replace(b"\0", b"")) or ".", folder / path)


def _write(folder: Path, path: str, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with (
        _said_of(path, "written"),
        open(os.open(folder / path, flags, 0o600), "wb") as stream,
    ):
        stream.write(content)


@contextmanager
def _said_of(path: str, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or "unknown"
        message = f"{quote(path, 200)} can't be {what} here: {reason}."
        raise GitError(message) from None
