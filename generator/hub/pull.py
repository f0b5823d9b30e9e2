"""Bring files of a Hub repository into a dataset's folder; edited files stay."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from generator.dataset.atomic_write import move_below, write_below
from generator.dataset.changes import UNRECORDED, owner_of
from generator.dataset.file_reading import has_link, is_folder, mode_of, read_bytes
from generator.dataset.lock import locked
from generator.dataset.paths import VERIFICATION, DatasetFile, Discovered, select
from generator.hub.client import Client
from generator.hub.failures import HubFailure, Unreachable
from generator.hub.remote import (
    Listing,
    RemoteFile,
    digest_of,
    fetch,
    in_threads,
    is_blob,
    is_of_dataset,
    list_files,
    listing_of,
)
from generator.problems.messages import one_line, plural, quote
from generator.review.sources import blobs_named

BLOBS = ("none", "needed", "all")
"""Which tensors are fetched: none, those that workloads name, or all."""

_MIB = 1024 * 1024
_SPARE = 64 * _MIB
_GIVEN_UP = 20
_MAX_RECORD = 256 * _MIB
_FOLDER = ".trace-dataset"
_INCOMING = f"{_FOLDER}/incoming"
_RECORD = f"{_FOLDER}/pull.json"
_FORMAT = 1


class PullStatus(str, Enum):
    """The outcome for one file."""

    CURRENT = "current"
    NEW = "new"
    CHANGED = "changed"
    KEPT = "kept"
    EDITED = "edited"
    BLOCKED = "blocked"
    FAILED = "failed"


@dataclass
class PullState:
    """The record of pulls: path → the digests that were pulled, and the last listing.

    The new digests are added before the files are placed: after a kill, no new file
    counts as edited. `listing` serves a pull without a network.
    """

    files: dict[str, list[str]] = field(default_factory=dict)
    listing: dict[str, Any] = field(default_factory=dict)

    def keep(self, repo: str, revision: str, listing: Listing) -> None:
        """Keep the listing of a revision."""
        files = [asdict(file) for file in listing.files.values()]
        at = {"repo": repo, "revision": revision, "commit": listing.commit}
        self.listing = {**at, "files": files}

    def kept(self, repo: str, revision: str) -> Listing | None:
        """Return the listing of the last pull, None where that was of something else."""
        value = self.listing
        if (value.get("repo"), value.get("revision")) != (repo, revision):
            return None
        try:
            files = [RemoteFile(**file) for file in value["files"]]
            return listing_of(str(value["commit"]), files)
        except (KeyError, TypeError, ValueError):
            return None


def read_state(root: Path) -> PullState:
    """Return what was pulled; nothing where the record is missing or no record.

    Without a record, every file that differs from the Hub counts as edited.
    """
    try:
        value = json.loads(read_bytes(root, _RECORD, _MAX_RECORD))
        files = {path: list(map(str, known)) for path, known in value["files"].items()}
        listing = dict(value["listing"])
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return PullState()
    return PullState(files, listing) if value.get("format") == _FORMAT else PullState()


def write_state(root: Path, state: PullState) -> None:
    """Write the record. Raises OSError."""
    files = dict(sorted(state.files.items()))
    value = {"format": _FORMAT, "files": files, "listing": state.listing}
    write_below(root, _RECORD, json.dumps(value).encode("ascii"))
    write_below(root, f"{_FOLDER}/.gitignore", b"*\n")


def choose(
    listing: Listing, op_types: Sequence[str], names: Sequence[str]
) -> tuple[list[RemoteFile], list[RemoteFile]]:
    """Return the texts and the blobs of some definitions; all where none are named.

    What belongs to no definition, the evidence of verification/ for one, is always
    there; rendered tests only with everything, since they are about all of an op_type.
    Raises UnknownName.
    """
    files = {p: file for p, file in listing.files.items() if is_of_dataset(p)}
    owners = {path: owner_of(path) for path in files}
    chosen = sorted(
        DatasetFile(*owner[0], path)
        for path, owner in owners.items()
        if owner is not None and owner[1] == "definition"
    )
    known = Discovered(tuple(chosen), tuple({file.op_type for file in chosen}), ())
    keys = {(f.op_type, f.name) for f in select(known, op_types, names)}
    texts: list[RemoteFile] = []
    blobs: list[RemoteFile] = []
    for path, file in files.items():
        owner = owners[path]
        is_shared = path.startswith(f"{VERIFICATION}/") or path == UNRECORDED
        is_chosen = owner[0] in keys if owner is not None else is_shared
        if is_chosen or not (op_types or names):
            (blobs if is_blob(path) else texts).append(file)
    return texts, blobs


@dataclass
class Pull:
    """Bring what is asked for to `root`, and hold what became of each file.

    `tell` is called for each file that is written. `problems` are what a person should
    know, `left_out` the number and bytes of blobs that were not asked for; `is_offline`
    says that the Hub was not asked, and all that is chosen was here.
    """

    client: Client
    root: Path
    revision: str
    tell: Callable[[str, PullStatus], None]
    force: bool = False
    commit: str = ""
    statuses: dict[str, PullStatus] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    left_out: tuple[int, int] = (0, 0)
    bytes: int = 0
    is_offline: bool = False
    _state: PullState = field(default_factory=PullState)

    def count(self, status: PullStatus) -> int:
        """Return how many files had that status."""
        return sum(one is status for one in self.statuses.values())

    def bring(self, op_types: Sequence[str], names: Sequence[str], blobs: str) -> None:
        """Bring the files of some definitions, or all, with the blobs of a word of BLOBS.

        Raises HubFailure, UnknownName, and OSError where nothing can be written. A
        problem with one file is in `problems`, and the other files are brought.
        """
        with locked(self.root):
            self._bring_locked(op_types, names, blobs)

    def _bring_locked(
        self, op_types: Sequence[str], names: Sequence[str], blobs: str
    ) -> None:
        for place in (_FOLDER, _INCOMING):
            mode = mode_of(self.root, place)
            if mode is not None and not stat.S_ISDIR(mode):
                raise HubFailure(f"{place} is a link or a file here: remove it.")
        # the library writes there by name
        if has_link(self.root, _INCOMING):
            self._clear()
        self._state = read_state(self.root)
        offline = None
        try:
            listing = list_files(self.client, self.revision)
            self._state.keep(self.client.repo, self.revision, listing)
        except Unreachable as error:
            kept = self._state.kept(self.client.repo, self.revision)
            if kept is None:
                raise
            listing, offline = kept, error
        texts, tensors = choose(listing, op_types, names)
        self.commit, self.is_offline = listing.commit, offline is not None
        for path, reason in listing.refused.items():
            self.problems.append(f"{quote(path, 200)} {reason}: not pulled")
        self._bring(texts, offline)
        if blobs == "needed":
            wanted = self._needed(tensors, texts)
        else:
            wanted = tensors if blobs == "all" else []
        self._bring(wanted, offline)
        left = [file.size for file in tensors if file.path not in self.statuses]
        self.left_out = (len(left), sum(left))
        if offline is None:
            write_state(self.root, self._state)
        if not self.count(PullStatus.FAILED):
            self._clear()

    def _clear(self) -> None:
        """Remove the folder of downloads; links in it are removed, not followed."""
        if is_folder(self.root, _INCOMING):
            shutil.rmtree(self.root / _INCOMING, ignore_errors=True)

    def _needed(
        self, blobs: Iterable[RemoteFile], texts: Iterable[RemoteFile]
    ) -> list[RemoteFile]:
        """Return the recordings, and the blobs that the workloads here name."""
        lines = [file.path for file in texts if file.path.startswith("workloads/")]
        named = {blob for path in lines for blob in blobs_named(self.root, path)}
        for path in sorted(named - {file.path for file in blobs})[:_GIVEN_UP]:
            self.problems.append(
                f"workloads name {quote(path, 200)}, which the repository has not"
            )
        return [
            file
            for file in blobs
            if file.path in named or file.path.startswith("blob/ground_truth/")
        ]

    def _bring(self, files: Collection[RemoteFile], offline: HubFailure | None) -> None:
        """Look at all files first, then fetch and place what is missing."""
        statuses = {file.path: self._status(file) for file in files}
        self.statuses |= statuses
        missing = [
            f for f in files if statuses[f.path] in (PullStatus.NEW, PullStatus.CHANGED)
        ]
        if not missing:
            return
        if offline is not None:
            text = f"{offline} {plural(len(missing), 'file')} of what is chosen"
            raise HubFailure(f"{text} can't be fetched, {missing[0].path} for one.")
        _need_room(self.root, sum(file.size for file in missing))
        for file in missing:
            self._state.files.setdefault(file.path, []).append(file.digest)
        write_state(self.root, self._state)
        try:
            in_threads(self._fetch, missing, self._note)
        finally:
            write_state(self.root, self._state)

    def _status(self, file: RemoteFile) -> PullStatus:
        """Return what is to become of a file, by what lies at its place."""
        path = file.path
        try:
            if in_the_way := _in_the_way(self.root, path):
                self.problems.append(f"{path}: {in_the_way}: not pulled")
                return PullStatus.BLOCKED
            digest = digest_of(self.root, path, file)
        except FileNotFoundError:
            return PullStatus.NEW
        except OSError as error:
            self.problems.append(f"{path}: {error.strerror}: not pulled")
            return PullStatus.BLOCKED
        if digest == file.digest:
            self._state.files[path] = [digest]
            return PullStatus.CURRENT
        known = self._state.files.get(path, ())
        if self.force or digest in known:
            return PullStatus.CHANGED
        if file.digest in known:
            return PullStatus.KEPT
        self.problems.append(
            f"{path}: edited here, and another one on the Hub: left as it is (--force "
            "overwrites it)"
        )
        return PullStatus.EDITED

    def _fetch(self, file: RemoteFile) -> None:
        """Fetch a file, and put it to its place at once."""
        fetched = fetch(self.client, self.commit, file, self.root / _INCOMING)
        if reason := _in_the_way(self.root, file.path):
            raise HubFailure(f"{one_line(file.path)}: {reason}.")
        move_below(self.root, fetched.relative_to(self.root).as_posix(), file.path)

    def _note(self, file: RemoteFile, error: BaseException | None) -> None:
        """Note what became of a file; raise what the next file would not escape."""
        if error is None:
            self._state.files[file.path] = [file.digest]
            self.bytes += file.size
            self.tell(file.path, self.statuses[file.path])
            return
        if not isinstance(error, HubFailure):
            raise error
        self.statuses[file.path] = PullStatus.FAILED
        self.problems.append(f"{file.path}: {error}")
        concerns_all = isinstance(error, Unreachable) or error.status in (401, 403, 429)
        if concerns_all or self.count(PullStatus.FAILED) >= _GIVEN_UP:
            raise error


def _in_the_way(root: Path, path: str) -> str:
    """Return what keeps a file from its place: a link, a folder, a file for a folder."""
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        shown = "/".join(parts[:depth])
        try:
            mode = os.lstat(root / shown).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return ""
        if stat.S_ISLNK(mode):
            return f"{shown} is a symbolic link here, which is not followed"
        if depth == len(parts) and not stat.S_ISREG(mode):
            return "no ordinary file lies here"
        if depth < len(parts) and not stat.S_ISDIR(mode):
            return f"{shown} is no folder here"
    return ""


def _need_room(root: Path, size: int) -> None:
    root.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(root).free
    if size + _SPARE > free:
        raise HubFailure(
            f"{size / _MIB:,.0f} MiB are to be fetched, and the disk has "
            f"{free / _MIB:,.0f} MiB left: choose fewer definitions, or fewer --blobs."
        )
