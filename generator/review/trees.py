"""Bring both sides of a review into folders that can be validated, and compare them."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from generator.attached import Key
from generator.lfs import LFS_MAGIC
from generator.review.git import Entry, GitError, Repository, Tree
from generator.wording import quote

FOLDERS = ("definitions", "workloads", "blob", "solutions", "traces", "verification")
"""The folders of a dataset; what else lies in a repository is not its content."""

RECORDINGS = "blob/ground_truth/"
_RECORDED = ".safetensors"
MAX_TOTAL = 4 * 1024 * 1024 * 1024
"""Bytes that are copied out of git's objects at most."""

_MAX_FILES = 2_000_000


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


def _same(one: Entry | None, other: Entry | None) -> bool:
    if one is None or other is None:
        return False
    return one.oid == other.oid and one.mode[:2] == other.mode[:2]


_RENDERED = re.compile(r"tests/references/test_\w+\.py", re.ASCII)


def is_dataset(path: str) -> bool:
    """Return whether a path lies in one of a dataset's folders."""
    return path.split("/", 1)[0] in FOLDERS


def is_rendered(path: str) -> bool:
    """Return whether a path is that of a rendered reference test."""
    return _RENDERED.fullmatch(path) is not None


def working_tree(repository: Repository, root: Path, base: Tree) -> Tree:
    """Return the files that lie in the working tree, as git would name their content.

    Below the dataset's folders everything counts that lies there, ignored or not: that
    is what readers of the dataset find. Elsewhere git's own list counts.
    """
    index, unchanged = repository.index()
    found: Tree = {}
    algorithm = "sha256" if _is_sha256(base, index) else "sha1"
    folders = [f for f in FOLDERS if os.path.lexists(root / f)]
    paths = [*_walk(root, folders)]
    paths += [p for p in index if not is_dataset(p) and os.path.lexists(root / p)]
    paths += [p for p in repository.untracked() if not is_dataset(p)]
    for path in paths:
        known = index.get(path)
        if known is not None and path in unchanged:
            found[path] = known
        else:
            entry = _entry(root, path, base.get(path), algorithm)
            if entry is not None:
                found[path] = entry
    # a submodule is a folder here and has no content of its own
    found |= {p: e for p, e in index.items() if e.mode == "160000"}
    return found


def _is_sha256(*trees: Tree) -> bool:
    return any(len(entry.oid) == 64 for tree in trees for entry in tree.values())


def _walk(root: Path, folders: Iterable[str]) -> Iterable[str]:
    """Yield the files below some folders; links are files, and not followed."""
    waiting = list(folders)
    while waiting:
        folder = waiting.pop()
        if os.path.islink(root / folder) or not os.path.isdir(root / folder):
            yield folder
            continue
        try:
            with os.scandir(root / folder) as entries:
                for entry in entries:
                    path = f"{folder}/{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name != ".git":
                            waiting.append(path)
                    else:
                        yield path
        except OSError:
            # validation says that a folder can't be listed
            continue


def _entry(root: Path, path: str, base: Entry | None, algorithm: str) -> Entry | None:
    """Return the entry that a file of the working tree would be; None if unreadable."""
    full = root / path
    try:
        status = os.lstat(full)
        if stat.S_ISLNK(status.st_mode):
            content = os.fsencode(os.readlink(full))
            return Entry("120000", _blob_id(content, algorithm), len(content))
        if not stat.S_ISREG(status.st_mode):
            return Entry("000000", "", 0)
        if base is not None and 0 < base.size < 1024 < status.st_size:
            # maybe a pointer of Git LFS, whose data lies here
            return Entry(
                "100644", _pointer_or_blob(full, base, algorithm), status.st_size
            )
        return Entry(
            "100644", _file_id(full, status.st_size, algorithm), status.st_size
        )
    except OSError:
        return None


def _pointer_or_blob(full: Path, base: Entry, algorithm: str) -> str:
    """Return the base's id where its LFS pointer is about the file, else the file's."""
    digest = hashlib.sha256()
    size = 0
    with open(full, "rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
            size += len(piece)
    text = LFS_MAGIC + b".github.com/spec/v1\noid sha256:" + digest.hexdigest().encode()
    text += b"\nsize %d\n" % size
    if _blob_id(text, algorithm) == base.oid:
        return base.oid
    return _file_id(full, size, algorithm)


def _file_id(full: Path, size: int, algorithm: str) -> str:
    digest = hashlib.new(algorithm, b"blob %d\0" % size, usedforsecurity=False)
    with open(full, "rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _blob_id(content: bytes, algorithm: str) -> str:
    head = b"blob %d\0" % len(content)
    return hashlib.new(algorithm, head + content, usedforsecurity=False).hexdigest()


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
    if total > MAX_TOTAL or len(files) > _MAX_FILES:
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
    try:
        with open(os.open(folder / path, flags, 0o600), "wb") as stream:
            stream.write(content)
    except OSError as error:
        reason = error.strerror or "unknown"
        raise GitError(f"{quote(path, 200)} can't be written here: {reason}.") from None


def _make_folder(folder: Path, path: str, made: set[str]) -> None:
    parent = path.rpartition("/")[0]
    if parent not in made:
        try:
            os.makedirs(folder / parent, exist_ok=True)
        except OSError as error:
            reason = error.strerror or "unknown"
            message = f"{quote(parent, 200)} can't be made here: {reason}."
            raise GitError(message) from None
        made.add(parent)
