"""Bring files of a Hub repository into a dataset's folder; edited files stay."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from generator.hub.choose import BlobChoice, choose, needed
from generator.hub.client import Client
from generator.hub.failures import HubFailure, Unreachable
from generator.hub.remote import (
    RemoteFile,
    digest_of,
    fetch,
    in_threads,
    list_files,
)
from generator.hub.state import INCOMING, PullState, read_state, write_state
from generator.problems.messages import one_line, plural, quote

_MIB = 1024 * 1024
_SPARE = 64 * _MIB
_GIVEN_UP = 20


class Fate(str, Enum):
    """What became of one file."""

    CURRENT = "current"
    NEW = "new"
    CHANGED = "changed"
    KEPT = "kept"
    EDITED = "edited"
    BLOCKED = "blocked"
    FAILED = "failed"


@dataclass(frozen=True)
class Order:
    """Hold what was asked for; nothing named is everything."""

    revision: str
    names: Sequence[str] = ()
    op_types: Sequence[str] = ()
    blobs: BlobChoice = BlobChoice.NONE
    force: bool = False


@dataclass
class Pulled:
    """Hold what became of each file, and what a person should know.

    `left_out` are blobs that were not asked for; `is_offline` says that the Hub was not
    asked, and all that is chosen was here.
    """

    commit: str
    fates: dict[str, Fate] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    left_out: tuple[int, int] = (0, 0)
    bytes: int = 0
    is_offline: bool = False

    def count(self, fate: Fate) -> int:
        """Return how many files had that fate."""
        return sum(found is fate for found in self.fates.values())


def pull(
    client: Client, order: Order, root: Path, tell: Callable[[str, Fate], None]
) -> Pulled:
    """Bring what was asked for to `root`; call `tell` for each file that is written.

    Raises HubFailure, UnknownName, and OSError where nothing can be written. A problem
    with one file is in `problems`, and the other files are brought.
    """
    state = read_state(root)
    offline = None
    try:
        listing = list_files(client, order.revision)
        state.keep(client.repo, order.revision, listing)
    except Unreachable as error:
        kept = state.kept(client.repo, order.revision)
        if kept is None:
            raise
        listing, offline = kept, error
    texts, blobs = choose(listing, order.op_types, order.names)
    pulled = Pulled(listing.commit, is_offline=offline is not None)
    for path, reason in listing.refused.items():
        pulled.problems.append(f"{quote(path, 200)} {reason}: not pulled")
    job = _Job(client, root, order.force, state, pulled, tell, offline)
    job.bring(texts)
    wanted = blobs if order.blobs is BlobChoice.ALL else []
    if order.blobs is BlobChoice.NEEDED:
        wanted, missing = needed(root, blobs, texts)
        for path in missing[:_GIVEN_UP]:
            pulled.problems.append(
                f"workloads name {quote(path, 200)}, which the repository has not"
            )
    job.bring(wanted)
    left = [file.size for file in blobs if file.path not in pulled.fates]
    pulled.left_out = (len(left), sum(left))
    if offline is None:
        write_state(root, state)
    if not pulled.count(Fate.FAILED):
        shutil.rmtree(root / INCOMING, ignore_errors=True)
    return pulled


@dataclass
class _Job:
    client: Client
    root: Path
    force: bool
    state: PullState
    pulled: Pulled
    tell: Callable[[str, Fate], None]
    offline: HubFailure | None

    def bring(self, files: Collection[RemoteFile]) -> None:
        """Look at all files first, then fetch and place what is missing."""
        fates = {file.path: self._fate(file) for file in files}
        self.pulled.fates |= fates
        missing = [f for f in files if fates[f.path] in (Fate.NEW, Fate.CHANGED)]
        if not missing:
            return
        if self.offline is not None:
            text = f"{self.offline} {plural(len(missing), 'file')} of what is chosen"
            raise HubFailure(f"{text} can't be fetched, {missing[0].path} for one.")
        _need_room(self.root, sum(file.size for file in missing))
        for file in missing:
            self.state.files.setdefault(file.path, []).append(file.digest)
        write_state(self.root, self.state)
        try:
            in_threads(self._fetch, missing, self._note)
        finally:
            write_state(self.root, self.state)

    def _fate(self, file: RemoteFile) -> Fate:
        """Return what is to become of a file, by what lies at its place."""
        path, problems = file.path, self.pulled.problems
        try:
            if in_the_way := _in_the_way(self.root, path):
                problems.append(f"{path}: {in_the_way}: not pulled")
                return Fate.BLOCKED
            digest = digest_of(self.root / path, file)
        except FileNotFoundError:
            return Fate.NEW
        except OSError as error:
            problems.append(f"{path}: {error.strerror}: not pulled")
            return Fate.BLOCKED
        if digest == file.digest:
            self.state.files[path] = [digest]
            return Fate.CURRENT
        known = self.state.files.get(path, ())
        if self.force or digest in known:
            return Fate.CHANGED
        if file.digest in known:
            return Fate.KEPT
        problems.append(
            f"{path}: edited here, and another one on the Hub: left as it is (--force "
            "overwrites it)"
        )
        return Fate.EDITED

    def _fetch(self, file: RemoteFile) -> None:
        incoming = self.root / INCOMING
        found = fetch(self.client, self.pulled.commit, file, incoming)
        _place(self.root, file.path, found)

    def _note(self, file: RemoteFile, error: BaseException | None) -> None:
        """Note what became of a file; raise what the next file would not escape."""
        pulled = self.pulled
        if error is None:
            self.state.files[file.path] = [file.digest]
            pulled.bytes += file.size
            self.tell(file.path, pulled.fates[file.path])
            return
        if not isinstance(error, HubFailure):
            raise error
        pulled.fates[file.path] = Fate.FAILED
        pulled.problems.append(f"{file.path}: {error}")
        concerns_all = isinstance(error, Unreachable) or error.status in (401, 403, 429)
        if concerns_all or pulled.count(Fate.FAILED) >= _GIVEN_UP:
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


def _place(root: Path, path: str, found: Path) -> None:
    """Put a whole file to its place at once."""
    target = root / path
    if reason := _in_the_way(root, path):
        raise HubFailure(f"{one_line(path)}: {reason}.")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.replace(found, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        # the folder is on another disk than the dataset's root
        beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        shutil.copyfile(found, beside)
        os.replace(beside, target)
