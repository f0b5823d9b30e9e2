"""The files of both sides of a review, compared, and written into folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from generator.dataset.artifacts import Key
from generator.dataset.paths import is_dataset, is_rendered
from generator.problems.failure import Failure
from generator.problems.messages import quote

RECORDINGS = "blob/ground_truth/"
_RECORDED = ".safetensors"
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
        return frozenset(
            path
            for path in self.base.keys() | self.head.keys()
            if not _same(self.base.get(path), self.head.get(path))
        )


def _same(one: TreeEntry | None, other: TreeEntry | None) -> bool:
    if one is None or other is None:
        return False
    return one.oid == other.oid and one.mode[:2] == other.mode[:2]


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


class Objects(Protocol):
    """Have the content of a tree's files: a checkout has, and the Hub."""

    def blobs(self, oids: Sequence[str]) -> Iterator[bytes]:
        """Yield the content of each object, one after the other in memory."""


def write_tree(
    repository: Objects,
    tree: Tree,
    folder: Path,
    *,
    is_empty: Callable[[str], bool] = lambda path: False,
    recorded: Collection[Key] = (),
) -> None:
    """Write the dataset's files of a tree below `folder`, which is new and empty.

    Those that `is_empty` says are written without content, and so are recordings, but
    for those of the definitions `recorded`. Links are made last and lead where they
    led, so that validation can say so. Raises GitError where there is too much.
    """
    bad = set(refused(tree))
    wanted = {
        path: entry
        for path, entry in tree.items()
        if (is_dataset(path) or is_rendered(path)) and path not in bad
    }
    files = {p: e for p, e in wanted.items() if e.is_file}
    kept = {f"{RECORDINGS}{op_type}/{name}{_RECORDED}" for op_type, name in recorded}
    hollow = {p for p in files if is_empty(p) or (_is_recording(p) and p not in kept)}
    full = [p for p in files if p not in hollow]
    total = sum(files[p].size for p in full)
    if total > MAX_TOTAL or len(files) > MAX_FILES:
        raise GitError(
            f"The tree has {len(files)} files of {total >> 20} MiB, more than the "
            f"{MAX_TOTAL >> 20} MiB that are copied for a review."
        )
    made: set[str] = set()
    for path in sorted(hollow):
        _write(folder, path, b"", made)
    contents = repository.blobs([files[p].oid for p in full])
    for path, content in zip(full, contents, strict=True):
        _write(folder, path, content, made)
    links = [p for p, e in wanted.items() if e.is_link]
    targets = repository.blobs([wanted[p].oid for p in links])
    for path, target in zip(links, targets, strict=True):
        _make_folder(folder, path, made)
        os.symlink(os.fsdecode(target.replace(b"\0", b"")) or ".", folder / path)


def _is_recording(path: str) -> bool:
    return path.startswith(RECORDINGS) and path.endswith(_RECORDED)


def _write(folder: Path, path: str, content: bytes, made: set[str]) -> None:
    _make_folder(folder, path, made)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with (
        _said_of(path, "written"),
        open(os.open(folder / path, flags, 0o600), "wb") as stream,
    ):
        stream.write(content)


def _make_folder(folder: Path, path: str, made: set[str]) -> None:
    parent = path.rpartition("/")[0]
    if parent not in made:
        with _said_of(parent, "made"):
            os.makedirs(folder / parent, exist_ok=True)
        made.add(parent)


@contextmanager
def _said_of(path: str, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or "unknown"
        message = f"{quote(path, 200)} can't be {what} here: {reason}."
        raise GitError(message) from None
