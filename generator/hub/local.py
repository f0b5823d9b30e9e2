"""The files of a dataset that belong to definitions, with their hashes."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from generator.dataset.artifacts import Key
from generator.dataset.changes import owner_of
from generator.dataset.file_reading import LFS_MAGIC
from generator.dataset.paths import FOLDERS, is_evidence
from generator.hub.names import TESTS
from generator.problems.failure import Failure
from generator.problems.messages import one_line

_UNRECORDED = "blob/ground_truth/unrecorded.json"
_POINTER_OID = re.compile(rb"^oid sha256:([0-9a-f]{64})$", re.MULTILINE)
_POINTER_SIZE = re.compile(rb"^size (\d+)$", re.MULTILINE)
_STEP = 1024 * 1024
_LONGEST_POINTER = 1024
_SHORTEST_SECRET = 8


class Unfit(Failure):
    """Say in one line why a file is not pushed, whatever is allowed."""


@dataclass(frozen=True)
class LocalFile:
    """Hold a file's hashes: git's of a blob, and SHA-256 as LFS names it.

    Of an LFS pointer, which a clone without LFS has, `sha256` and `size` are those of
    the file that it points to; that file is not here. `path` is its path in the dataset,
    `source` is where its bytes lie.
    """

    path: str
    source: Path
    size: int
    sha1: str
    sha256: str
    is_pointer: bool = False


@dataclass(frozen=True)
class Inventory:
    """Hold the paths of a dataset: each definition's own, and those of all."""

    owned: dict[Key, tuple[str, ...]]
    evidence: tuple[str, ...]
    tests: tuple[str, ...]

    def shared(self, keys: Collection[Key], unrecorded: Collection[str]) -> list[str]:
        """Return what definitions share with others: tests, evidence, what is left.

        `unrecorded` are the definitions that unrecorded.json names.
        """
        op_types = {op_type for op_type, _ in keys}
        names = {name for _, name in keys}
        mine = {f"{TESTS}/test_{op_type}.py" for op_type in op_types}
        tests = [p for p in self.tests if p in mine or not _is_test(p)]
        evidence = [
            p for p in self.evidence if p != _UNRECORDED or names & set(unrecorded)
        ]
        return [*evidence, *tests]


def take_inventory(root: Path) -> Inventory:
    """Find the files of a dataset. Raises Unfit for a folder that is a link."""
    owned: dict[Key, list[str]] = {}
    evidence = []
    for path in _walk(root, FOLDERS):
        owner = owner_of(path)
        if owner is not None:
            owned.setdefault(owner[0], []).append(path)
        elif path == _UNRECORDED or is_evidence(path):
            evidence.append(path)
    tests = [p for p in _walk(root, [TESTS]) if _is_rendered(p)]
    return Inventory(
        {key: tuple(paths) for key, paths in owned.items()},
        tuple(evidence),
        tuple(tests),
    )


def _walk(root: Path, folders: Sequence[str]) -> Iterator[str]:
    """Yield paths, links to files among them; raises Unfit for links to folders."""
    for top in folders:
        for folder, below, names in os.walk(root / top):
            below[:] = sorted(n for n in below if n[0] != "." and n != "__pycache__")
            linked = [n for n in below if os.path.islink(os.path.join(folder, n))]
            if linked:
                raise Unfit(_is_link(f"{os.path.relpath(folder, root)}/{linked[0]}"))
            start = os.path.relpath(folder, root).replace(os.sep, "/")
            yield from (f"{start}/{n}" for n in sorted(names) if n[0] != ".")


def _is_rendered(path: str) -> bool:
    return path.endswith((".py", ".ini", "/SHA256SUMS"))


def _is_test(path: str) -> bool:
    return path.startswith(f"{TESTS}/test_")


def read_file(root: Path, path: str, secret: str = "") -> LocalFile:
    """Return a file with its hashes. Raises Unfit.

    Links are refused: one could lead to anything that this user may read. So is a file
    that has `secret`, the user's token, in it.
    """
    if not path.isascii():
        try:
            path.encode("utf-8")
        except UnicodeEncodeError:
            raise Unfit(f"{one_line(path)} has a name that is no text.") from None
    full = root / path
    real = os.path.realpath(root)
    try:
        inside = os.path.realpath(full) == os.path.join(real, *path.split("/"))
        if not inside or not stat.S_ISREG(os.lstat(full).st_mode):
            raise Unfit(_is_link(path))
        known = secret.encode() if len(secret) >= _SHORTEST_SECRET else b""
        return _hashed(full, path, known)
    except OSError as error:
        reason = one_line(error.strerror or str(error))
        raise Unfit(f"{one_line(path)} can't be read: {reason}.") from None


def _is_link(path: str) -> str:
    return (
        f"{one_line(path)} is a link or no ordinary file, and could lead anywhere: put "
        "what it leads to in its place."
    )


def _hashed(full: Path, path: str, secret: bytes) -> LocalFile:
    size = full.stat().st_size
    sha1, sha256 = hashlib.sha1(b"blob %d\0" % size), hashlib.sha256()
    read, tail, head = 0, b"", b""
    with full.open("rb") as stream:
        while chunk := stream.read(_STEP):
            head = head or chunk[:_LONGEST_POINTER]
            if secret and secret in tail + chunk:
                raise Unfit(
                    f"{one_line(path)} has your Hugging Face token in it: take it out, "
                    "and revoke the token if anybody else saw it."
                )
            tail = chunk[-len(secret) :] if secret else b""
            sha1.update(chunk)
            sha256.update(chunk)
            read += len(chunk)
    if read != size:
        raise Unfit(f"{one_line(path)} is being written: wait, and run again.")
    oid, far = _POINTER_OID.search(head), _POINTER_SIZE.search(head)
    if head.startswith(LFS_MAGIC) and oid and far and size <= _LONGEST_POINTER:
        name = oid.group(1).decode()
        return LocalFile(path, full, int(far.group(1)), sha1.hexdigest(), name, True)
    return LocalFile(path, full, size, sha1.hexdigest(), sha256.hexdigest())
