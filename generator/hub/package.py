"""Contents of one pull request: definitions and the files that belong to them.

Tests of a checkout may import this package. Those of a dataset on the Hub import a copy
of what they need, which lies beside them: `make_standalone` writes both.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import BinaryIO

from generator.dataset.artifacts import Key
from generator.dataset.changes import UNRECORDED, Sorted, sort_changes
from generator.dataset.file_reading import (
    LFS_MAGIC,
    entries,
    is_folder,
    opened,
    read_text,
)
from generator.dataset.json_file import read_json
from generator.dataset.paths import FOLDERS, DatasetFile
from generator.hub.card import card_files, settings_of
from generator.hub.preconditions import Objection, Preconditions
from generator.hub.remote import TESTS, RemoteFile
from generator.problems import Failure
from generator.problems.messages import one_line, plural
from generator.rendering.files import SUMS, format_sums, read_sums
from generator.rendering.standalone import is_standalone, standalone

_POINTER = re.compile(
    rb"%b[^\0]*?\noid sha256:([0-9a-f]{64})\nsize (\d+)\s*" % re.escape(LFS_MAGIC)
)
_STEP = 1024 * 1024
_LONGEST_POINTER = 1024
_SHORTEST_SECRET = 8
_START = "<!-- trace-dataset push: "
_LONGEST = 120


@dataclass(frozen=True)
class LocalFile:
    """A file's hashes: git's of a blob, and SHA-256 as LFS names it.

    Of an LFS pointer, which a clone without LFS has, `sha256` and `size` are those of
    the file that it points to; that file is not here. `path` is its path in the dataset;
    `source` says where its bytes lie, or has them where no file does.
    """

    path: str
    source: Path | bytes
    size: int
    sha1: str
    sha256: str
    is_pointer: bool = False


def take_inventory(root: Path) -> Sorted:
    """Find the files of a dataset. Raises Failure for a folder that is a link."""
    rendered = (".py", ".ini", f"/{SUMS}")
    tests = [path for path in _walk(root, [TESTS]) if path.endswith(rendered)]
    return replace(sort_changes(_walk(root, FOLDERS)), tests=tests)


def paths_of(
    changes: Sorted, keys: Collection[Key], unrecorded: Collection[str]
) -> list[str]:
    """Return the files of definitions, and what they share with others.

    That is the evidence, their op_types' tests, and unrecorded.json where it names one
    of them: `unrecorded` are all that it names.
    """
    mine = {f"{TESTS}/test_{op_type}.py" for op_type, _ in keys}
    others = {path for path in changes.tests if path.startswith(f"{TESTS}/test_")}
    left_out = others - mine
    if not any(name in unrecorded for _, name in keys):
        left_out.add(UNRECORDED)
    files = [changes.definitions[key] for key in keys if key in changes.definitions]
    artifacts = [path for one in files for paths in one.values() for path in paths]
    return artifacts + [
        p for p in (*changes.evidence, *changes.tests) if p not in left_out
    ]


def _walk(root: Path, folders: Sequence[str]) -> Iterator[str]:
    """Yield paths, links to files among them; raises Failure for links to folders."""
    for top in folders:
        for place in (top.split("/")[0], top):
            _refuse_link(root, place)
        if is_folder(root, top):
            yield from _inside(root, top)


def _inside(root: Path, folder: str) -> Iterator[str]:
    below = []
    for entry in entries(root, folder):
        path = f"{folder}/{entry.name}"
        if entry.name[0] == "." or entry.name == "__pycache__":
            continue
        if entry.is_folder:
            below.append(path)
        elif entry.is_link and (root / path).is_dir():
            _refuse_link(root, path)
        else:
            yield path
    for path in below:
        yield from _inside(root, path)


def _refuse_link(root: Path, path: str, *, ordinary: bool = False) -> None:
    """Raise Failure for a link, and where `ordinary` for all but an ordinary file."""
    full = root / path
    if os.path.islink(full) or (ordinary and not stat.S_ISREG(os.lstat(full).st_mode)):
        raise Failure(
            f"{one_line(path)} is a link or no ordinary file, and could lead anywhere: "
            "put what it leads to in its place."
        )


def read_file(
    root: Path, path: str, secret: str = "", content: bytes | None = None
) -> LocalFile:
    """Return a file of the inventory, or one that was made, with its hashes.

    Raises Failure for a link, which could lead to anything that this user may read, and
    for a file that has `secret`, the user's token, in it.
    """
    full = root / path
    try:
        path.encode("utf-8")
        if content is not None:
            return _hashed(path, content, io.BytesIO(content), len(content), secret)
        _refuse_link(root, path, ordinary=True)
        with opened(root, path) as descriptor:
            size = os.fstat(descriptor).st_size
            with os.fdopen(os.dup(descriptor), "rb") as stream:
                return _hashed(path, full, stream, size, secret)
    except UnicodeEncodeError:
        raise Failure(f"{one_line(path)} has a name that is no text.") from None
    except OSError as error:
        reason = one_line(error.strerror or str(error))
        raise Failure(f"{one_line(path)} can't be read: {reason}.") from None


def _hashed(
    path: str, source: Path | bytes, stream: BinaryIO, size: int, secret: str
) -> LocalFile:
    known = secret.encode() if len(secret) >= _SHORTEST_SECRET else b""
    sha1, sha256 = hashlib.sha1(b"blob %d\0" % size), hashlib.sha256()
    read, tail, head = 0, b"", b""
    while chunk := stream.read(_STEP):
        head = head or chunk[:_LONGEST_POINTER]
        if known and known in tail + chunk:
            raise Failure(
                f"{one_line(path)} has your Hugging Face token in it: take it out, "
                "and revoke the token if anybody else saw it."
            )
        tail = chunk[-len(known) :]
        sha1.update(chunk)
        sha256.update(chunk)
        read += len(chunk)
    if read != size:
        raise Failure(f"{one_line(path)} is being written: wait, and run again.")
    pointer = _POINTER.fullmatch(head) if size <= _LONGEST_POINTER else None
    if pointer is not None:
        oid, size = pointer[1].decode(), int(pointer[2])
        return LocalFile(path, source, size, sha1.hexdigest(), oid, True)
    return LocalFile(path, source, size, sha1.hexdigest(), sha256.hexdigest())


@dataclass(frozen=True)
class Delta:
    """Each file with its change, and how many files are there already.

    The steps are add, change and delete; `absent` were to be deleted and are not there.
    """

    steps: tuple[tuple[str, LocalFile | RemoteFile], ...]
    same: int
    absent: tuple[str, ...] = ()

    def count(self, step: str) -> int:
        """Return to how many files that is done."""
        return sum(does == step for does, _ in self.steps)

    @property
    def sent(self) -> list[LocalFile]:
        """Return the files that are to be sent."""
        sent = (file for _, file in self.steps if isinstance(file, LocalFile))
        return sorted(sent, key=lambda file: file.path)


def compare(
    files: Collection[LocalFile],
    remote: Mapping[str, RemoteFile],
    delete: Sequence[str] = (),
) -> Delta:
    """Compare by hash; nothing is downloaded. Raises Failure for a pointer to be sent."""
    news = [file for file in files if not is_same(file, remote.get(file.path))]
    for file in news:
        if file.is_pointer:
            raise Failure(
                f"{one_line(file.path)} is a Git LFS pointer here, and the repository "
                "does not have what it points to: git lfs pull."
            )
    steps: tuple[tuple[str, LocalFile | RemoteFile], ...] = (
        *(("add", file) for file in news if file.path not in remote),
        *(("change", file) for file in news if file.path in remote),
        *(("delete", remote[path]) for path in delete if path in remote),
    )
    absent = tuple(path for path in delete if path not in remote)
    return Delta(steps, len(files) - len(news), absent)


def is_same(file: LocalFile, there: RemoteFile | None) -> bool:
    """Return whether the Hub has these bytes."""
    if there is None or there.sha256 is not None:
        return there is not None and there.sha256 == file.sha256
    return not file.is_pointer and there.sha1 == file.sha1


def make_standalone(
    root: Path, tests: Sequence[str], secret: str = ""
) -> dict[str, bytes]:
    """Return the standalone form of a dataset's tests: path → content.

    `tests` are the paths of the files in tests/references. Empty where they are
    standalone already, or there are none. A file that a person edited is left out of
    SHA256SUMS, so that a clone treats it as edited too. Raises Failure.
    """
    if not tests or is_standalone(root / TESTS):
        return {}
    recorded = read_sums(root, TESTS)
    # refuses links before anything is read through them
    files = [read_file(root, path, secret) for path in tests]
    names = {file.path.removeprefix(f"{TESTS}/"): file for file in files}
    names.pop(SUMS, None)
    try:
        texts = {name: read_text(root, names[name].path) for name in names}
        copies = standalone(texts)
    except (SyntaxError, ValueError, OSError) as error:
        raise Failure(
            f"{TESTS} has no standalone form ({one_line(str(error), 200)}): gen-tests "
            "--all renders the tests again."
        ) from None
    contents = {name: text.encode("utf-8") for name, text in copies.items()}
    edited = {name for name, file in names.items() if recorded.get(name) != file.sha256}
    contents[SUMS] = format_sums(
        {n: hashlib.sha256(contents[n]).hexdigest() for n in copies.keys() - edited}
    )
    return {f"{TESTS}/{name}": content for name, content in contents.items()}


@dataclass(frozen=True)
class Bundle:
    """The definitions of one pull request, and the name it is found again by.

    `asked` says what was asked for, such as `definition rmsnorm_h4096`: it stays the
    same when an op_type gets one more definition, and so does the pull request.
    """

    asked: str
    files: tuple[DatasetFile, ...]

    @property
    def keys(self) -> tuple[Key, ...]:
        """Return the definitions' keys."""
        return tuple((file.op_type, file.name) for file in self.files)

    @property
    def marker(self) -> str:
        """Return the line that a pull request of this bundle has in its text."""
        name = self.asked
        if len(name) > _LONGEST or "--" in name or not name.isascii():
            name = f"sha256 {hashlib.sha256(name.encode()).hexdigest()}"
        return f"{_START}{name} -->"

    @property
    def title(self) -> str:
        """Return the title that a pull request gets unless another one is given."""
        if len(self.files) == 1:
            return one_line(f"Add {self.files[0].name}", 150)
        op_types = sorted({file.op_type for file in self.files})
        of = f" of {op_types[0]}" if len(op_types) == 1 else ""
        return one_line(f"Add {plural(len(self.files), 'definition')}{of}", 150)


@dataclass(frozen=True)
class PushOptions:
    """Options of a push: `reasons` allow the objections of rules.

    `card` asks for the dataset's card beside the definitions. The push goes to the pull
    request `number`, to `branch`, or to an own pull request where neither is given.
    """

    reasons: Mapping[str, str]
    message: str = ""
    delete: tuple[str, ...] = ()
    card: bool = False
    number: int | None = None
    branch: str | None = None


@dataclass(frozen=True)
class Package:
    """One bundle with its files and its preconditions."""

    root: Path
    bundle: Bundle
    files: tuple[LocalFile, ...]
    judged: Preconditions
    allowed: tuple[Objection, ...]
    options: PushOptions

    @property
    def title(self) -> str:
        """Return the title of the pull request and of its commit."""
        asked = " ".join(one_line(self.options.message, 200).split())
        return asked or self.bundle.title

    @property
    def paths(self) -> list[str]:
        """Return all paths that the push is about."""
        return [*(file.path for file in self.files), *self.options.delete]


def make_bundles(
    files: Sequence[DatasetFile],
    *,
    op_types: Iterable[str],
    names: Iterable[str],
    together: bool,
) -> list[Bundle]:
    """Return one bundle for each definition, or one of all `together`."""
    if not together or len(files) == 1:
        return [Bundle(f"definition {file.name}", (file,)) for file in files]
    asked = [
        *(f"op_type {name}" for name in sorted(set(op_types))),
        *(f"definition {name}" for name in sorted(set(names))),
    ]
    return [Bundle(", ".join(asked) or "all", tuple(files))]


def pack(
    dataset: Path,
    repo: str,
    bundles: Iterable[Bundle],
    judged: Preconditions,
    options: PushOptions,
) -> list[Package]:
    """Return each bundle with its files, read once however many share them.

    The card, and the standalone form of tests that are not, are made and written nowhere.
    Raises Failure for what can't be pushed.
    """
    from huggingface_hub import get_token

    inventory = take_inventory(dataset)
    secret = get_token() or ""
    card = card_files(dataset, settings_of(dataset, repo)) if options.card else {}
    tests = make_standalone(dataset, inventory.tests, secret)
    inventory = replace(inventory, tests=sorted(tests) or inventory.tests)
    contents = {**card, **tests}

    @cache
    def read(path: str) -> LocalFile:
        return read_file(dataset, path, secret, contents.get(path))

    unrecorded = read_json(dataset, UNRECORDED).value
    named = set(unrecorded) if isinstance(unrecorded, dict) else set()
    packages = []
    for bundle in bundles:
        paths = {*paths_of(inventory, bundle.keys, named), *card}
        if both := sorted(paths & set(options.delete)):
            raise Failure(
                f"{one_line(both[0])} is pushed, so that it can't be deleted."
            )
        files = tuple(map(read, sorted(paths)))
        allowed = tuple(judged.split(bundle.keys, options.reasons)[1])
        packages.append(Package(dataset, bundle, files, judged, allowed, options))
    return packages
