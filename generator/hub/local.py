"""The files of a dataset that belong to definitions, and what a push changes of them.

Tests of a checkout may import this package. Those of a dataset on the Hub import a copy
of what they need, which lies beside them: `make_standalone` writes both.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from generator.dataset.artifacts import Key
from generator.dataset.atomic_write import write_atomically
from generator.dataset.changes import owner_of
from generator.dataset.file_reading import LFS_MAGIC
from generator.dataset.paths import FOLDERS, is_evidence
from generator.hub.choose import UNRECORDED
from generator.hub.names import TESTS
from generator.hub.remote import RemoteFile
from generator.problems.failure import Failure
from generator.problems.messages import one_line
from generator.rendering.files import SUMS, read_sums, write_files
from generator.rendering.standalone import is_standalone, standalone

_POINTER = re.compile(
    rb"%b[^\0]*?\noid sha256:([0-9a-f]{64})\nsize (\d+)\s*" % re.escape(LFS_MAGIC)
)
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

    owned: dict[Key, list[str]]
    evidence: list[str]
    tests: Sequence[str]

    def shared(self, keys: Collection[Key], unrecorded: Collection[str]) -> list[str]:
        """Return what definitions share with others: tests, evidence, what is left.

        `unrecorded` are the definitions that unrecorded.json names.
        """
        mine = {f"{TESTS}/test_{op_type}.py" for op_type, _ in keys}
        others = {path for path in self.tests if path.startswith(f"{TESTS}/test_")}
        left_out = others - mine
        if not any(name in unrecorded for _, name in keys):
            left_out.add(UNRECORDED)
        return [p for p in (*self.evidence, *self.tests) if p not in left_out]


def take_inventory(root: Path) -> Inventory:
    """Find the files of a dataset. Raises Unfit for a folder that is a link."""
    owned: dict[Key, list[str]] = {}
    evidence = []
    for path in _walk(root, FOLDERS):
        owner = owner_of(path)
        if owner is not None:
            owned.setdefault(owner[0], []).append(path)
        elif path == UNRECORDED or is_evidence(path):
            evidence.append(path)
    rendered = (".py", ".ini", f"/{SUMS}")
    tests = [path for path in _walk(root, [TESTS]) if path.endswith(rendered)]
    return Inventory(owned, evidence, tests)


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


def read_file(root: Path, path: str, secret: str = "") -> LocalFile:
    """Return a file with its hashes. Raises Unfit.

    Links are refused: one could lead to anything that this user may read. So is a file
    that has `secret`, the user's token, in it.
    """
    full = root / path
    place = os.path.join(os.path.realpath(root), *path.split("/"))
    try:
        path.encode("utf-8")
        if os.path.realpath(full) != place or not stat.S_ISREG(os.lstat(full).st_mode):
            raise Unfit(_is_link(path))
        known = secret.encode() if len(secret) >= _SHORTEST_SECRET else b""
        return _hashed(full, path, known)
    except UnicodeEncodeError:
        raise Unfit(f"{one_line(path)} has a name that is no text.") from None
    except OSError as error:
        raise Unfit(_is_unreadable(path, error)) from None


def _is_link(path: str) -> str:
    return (
        f"{one_line(path)} is a link or no ordinary file, and could lead anywhere: put "
        "what it leads to in its place."
    )


def _is_unreadable(path: str, error: OSError) -> str:
    reason = one_line(error.strerror or str(error))
    return f"{one_line(path)} can't be read: {reason}."


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
            tail = chunk[-len(secret) :]
            sha1.update(chunk)
            sha256.update(chunk)
            read += len(chunk)
    if read != size:
        raise Unfit(f"{one_line(path)} is being written: wait, and run again.")
    pointer = _POINTER.fullmatch(head) if size <= _LONGEST_POINTER else None
    if pointer is not None:
        oid, size = pointer[1].decode(), int(pointer[2])
        return LocalFile(path, full, size, sha1.hexdigest(), oid, True)
    return LocalFile(path, full, size, sha1.hexdigest(), sha256.hexdigest())


@dataclass(frozen=True)
class Delta:
    """Hold what is to be added, changed and deleted, and how many are there already.

    `absent` were to be deleted and are not there.
    """

    added: tuple[LocalFile, ...]
    changed: tuple[LocalFile, ...]
    deleted: tuple[RemoteFile, ...]
    same: int
    absent: tuple[str, ...] = ()

    @property
    def sent(self) -> list[LocalFile]:
        """Return the files that are to be sent."""
        return sorted((*self.added, *self.changed), key=lambda f: f.path)

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is to be done."""
        return not (self.added or self.changed or self.deleted)


def compare(
    files: Collection[LocalFile],
    remote: Mapping[str, RemoteFile],
    delete: Sequence[str] = (),
) -> Delta:
    """Compare by hash; nothing is downloaded. Raises Unfit for a pointer to be sent."""
    news = [file for file in files if not is_same(file, remote.get(file.path))]
    for file in news:
        if file.is_pointer:
            raise Unfit(
                f"{one_line(file.path)} is a Git LFS pointer here, and the repository "
                "does not have what it points to: git lfs pull."
            )
    return Delta(
        tuple(file for file in news if file.path not in remote),
        tuple(file for file in news if file.path in remote),
        tuple(remote[path] for path in delete if path in remote),
        len(files) - len(news),
        tuple(path for path in delete if path not in remote),
    )


def is_same(file: LocalFile, there: RemoteFile | None) -> bool:
    """Return whether the Hub has these bytes."""
    if there is None or there.sha256 is not None:
        return there is not None and there.sha256 == file.sha256
    return not file.is_pointer and there.sha1 == file.sha1


def make_standalone(
    root: Path, tests: Sequence[str], folder: Path, secret: str = ""
) -> tuple[str, ...] | None:
    """Write the standalone form of a dataset's tests below `folder`; return the paths.

    `tests` are the paths of the files in tests/references. None, and nothing is written,
    where they are standalone already, or there are none. A file that a person edited is
    left out of SHA256SUMS, so that it passes for edited in a clone too. Raises Unfit.
    """
    if not tests or is_standalone(root / TESTS):
        return None
    recorded = read_sums(root / TESTS)
    texts, edited = {}, set()
    for path in tests:
        # refuses links before anything is read through them
        file, name = read_file(root, path, secret), path.removeprefix(f"{TESTS}/")
        if name == SUMS:
            continue
        texts[name] = _text(file)
        if recorded.get(name) != file.sha256:
            edited.add(name)
    try:
        made = standalone(texts)
    except (SyntaxError, ValueError, FileNotFoundError) as error:
        raise Unfit(
            f"{TESTS} has no standalone form ({one_line(str(error), 200)}): gen-tests "
            "--all renders the tests anew."
        ) from None
    output = folder / TESTS
    write_files(output, {name: made[name] for name in made.keys() - edited})
    for name in edited:
        write_atomically(output / name, made[name].encode("utf-8"))
    return tuple(sorted(f"{TESTS}/{name}" for name in (*made, SUMS)))


def _text(file: LocalFile) -> str:
    try:
        return file.source.read_text("utf-8")
    except UnicodeDecodeError:
        raise Unfit(f"{one_line(file.path)} is not UTF-8.") from None
    except OSError as error:
        raise Unfit(_is_unreadable(file.path, error)) from None
