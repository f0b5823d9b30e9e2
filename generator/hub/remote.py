"""The files of a commit: the Hub's listing, taken for hostile, and their bytes."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from generator.dataset.file_reading import opened
from generator.dataset.paths import FOLDERS, is_portable
from generator.hub.client import Client
from generator.hub.failures import HubFailure
from generator.problems.messages import one_line

TESTS = "tests/references"
MAX_FILES = 1_000_000
_SHA1 = re.compile(r"[0-9a-f]{40}")
_HASHES = re.compile(r"[0-9a-f]{40}([0-9a-f]{64})?")
_MIB = 1024 * 1024
_LARGEST_BLOB, _LARGEST_OTHER = 64 * 1024 * _MIB, 256 * _MIB
_LARGE = 8 * _MIB
_PIECE = 1 << 20
_PATHS_A_REQUEST = 500
_THREADS = 8
_LONGEST = 1000
_LONGEST_PART = 200
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class RemoteFile:
    """A file as the Hub lists it: `sha256` of one in LFS, else git's `sha1`."""

    path: str
    size: int
    sha1: str
    sha256: str | None

    @property
    def digest(self) -> str:
        """Return the hash that the content has: of the file, or git's of the blob."""
        return f"sha256:{self.sha256}" if self.sha256 else f"git:{self.sha1}"


@dataclass(frozen=True)
class Listing:
    """The files of one commit by path, and why some are written nowhere."""

    commit: str
    files: dict[str, RemoteFile]
    refused: dict[str, str]


def is_of_dataset(path: str) -> bool:
    """Return whether a path lies in a folder of the dataset, by its first parts."""
    return path.split("/", 1)[0] in FOLDERS or path.startswith(f"{TESTS}/")


def is_blob(path: str) -> bool:
    """Return whether a file is a tensor file, fetched on demand only."""
    return path.startswith("blob/") and not path.endswith(".json")


def remote_files(entries: Iterable[Any]) -> list[RemoteFile]:
    """Return the files among the entries that huggingface_hub lists."""
    return [
        RemoteFile(e.path, e.size, e.blob_id, e.lfs.sha256 if e.lfs else None)
        for e in entries
        if hasattr(e, "blob_id")
    ]


def files_at(
    client: Client, paths: Sequence[str], revision: str
) -> dict[str, RemoteFile]:
    """Return those of the paths that are files at a revision."""
    files: dict[str, RemoteFile] = {}
    for at in range(0, len(paths), _PATHS_A_REQUEST):
        some = list(paths[at : at + _PATHS_A_REQUEST])
        infos = client.ask("get_paths_info", some, revision=revision, about=revision)
        files |= {file.path: file for file in remote_files(infos)}
    return files


def is_commit(text: str) -> bool:
    """Return whether a text is a commit's id."""
    return _SHA1.fullmatch(text) is not None


def list_files(client: Client, revision: str) -> Listing:
    """Return what a branch, a tag, refs/pr/N or a commit has. Raises HubFailure."""
    commit = client.head(revision)
    if not is_commit(commit):
        raise HubFailure(f"The Hub names no commit for {one_line(revision, 100)}.")

    def listed() -> Listing:
        options: dict[str, Any] = {"recursive": True, "revision": commit}
        entries = client.api.list_repo_tree(client.repo, repo_type="dataset", **options)
        return listing_of(commit, remote_files(islice(entries, MAX_FILES + 1)))

    return client.call(listed, revision)


def listing_of(commit: str, files: Collection[RemoteFile]) -> Listing:
    """Return a listing of files as the Hub names them.

    Raises ValueError for what is no path, size or hash.
    """
    if len(files) > MAX_FILES:
        raise ValueError(f"over {MAX_FILES} files")
    refused: dict[str, str] = {}
    for file in files:
        is_file = isinstance(file.path, str) and isinstance(file.size, int)
        hashes = f"{file.sha1}{file.sha256 or ''}"
        if not is_file or file.size < 0 or not _HASHES.fullmatch(hashes):
            raise ValueError("a listing without paths, sizes or hashes")
        if reason := _why_not(file):
            refused[file.path] = reason
    times = Counter(file.path for file in files)
    refused |= {path: "is listed twice" for path, n in times.items() if n > 1}
    for path in _colliding(times.keys() - refused.keys()):
        refused[path] = "takes the place of another path on some systems"
    good = {file.path: file for file in files if file.path not in refused}
    return Listing(commit, dict(sorted(good.items())), dict(sorted(refused.items())))


def _why_not(file: RemoteFile) -> str:
    """Return why a file of a listing is written nowhere, nothing where it may be.

    A path may lead nowhere but below the dataset's folders, and to the same file on
    every system.
    """
    path, parts = file.path, file.path.split("/")
    if not is_of_dataset(path) and not path.startswith(("/", "..")):
        return ""  # never written anywhere: a .gitattributes at the top is no harm
    if path.startswith("/") or any(part in ("", ".", "..") for part in parts):
        return "is no path below the dataset"
    if len(path) > _LONGEST or any(len(p.encode()) > _LONGEST_PART for p in parts):
        return "is too long"
    if any(part.casefold().startswith(".git") for part in parts):
        return "is git's"
    if not path.isprintable() or not all(map(is_portable, parts)):
        return "has a name that not all systems can hold"
    largest = _LARGEST_BLOB if path.startswith("blob/") else _LARGEST_OTHER
    too_large = f"has {file.size / _MIB:,.0f} MiB, over {largest // _MIB:,} MiB"
    return too_large if file.size > largest else ""


def _colliding(paths: Collection[str]) -> list[str]:
    """Return the paths that are another one's, or its folder's, where case is nothing.

    Also those below a path that is a file.
    """
    files = set(map(_folded, paths))
    spelt: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        for part in _upwards(path):
            spelt[_folded(part)].add(part)
    return [
        path
        for path in paths
        if any(
            len(spelt[_folded(part)]) > 1 or (part != path and _folded(part) in files)
            for part in _upwards(path)
        )
    ]


def _upwards(path: str) -> Iterator[str]:
    """Yield a path and its folders."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", path.casefold())


def digest_of(root: Path, path: str, file: RemoteFile) -> str:
    """Return a local file's digest, of the kind that the listing has; raises OSError."""
    digest = hashlib.sha256()
    with opened(root, path) as descriptor:
        if not file.sha256:
            head = b"blob %d\0" % os.fstat(descriptor).st_size
            digest = hashlib.sha1(head, usedforsecurity=False)
        while piece := os.read(descriptor, _PIECE):
            digest.update(piece)
    return f"{'sha256' if file.sha256 else 'git'}:{digest.hexdigest()}"


def fetch(client: Client, commit: str, file: RemoteFile, folder: Path) -> Path:
    """Download a file to its path below `folder`; return that path.

    Content with another hash is downloaded once more. Raises HubFailure, and OSError
    where it can't be written.
    """
    for _ in range(2):
        downloaded = client.call(partial(_download, client, commit, file, folder))
        is_whole = downloaded.stat().st_size == file.size
        if is_whole and digest_of(folder, file.path, file) == file.digest:
            return downloaded
        downloaded.unlink()
    raise HubFailure(
        f"{one_line(file.path)} arrives with other bytes than the Hub lists, twice: "
        "run it again later."
    )


def in_threads(
    work: Callable[[_Item], object],
    items: Iterable[_Item],
    note: Callable[[_Item, BaseException | None], None],
) -> None:
    """Do the work on each item; `note` takes an item and what its work raised.

    Where `note` raises, no further item is begun.
    """
    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        begun = {pool.submit(work, item): item for item in items}
        try:
            for done in as_completed(begun):
                note(begun[done], done.exception())
        finally:
            for task in begun:
                task.cancel()


def _download(client: Client, commit: str, file: RemoteFile, folder: Path) -> Path:
    """Download with huggingface_hub, which goes on after a cut and waits after 429.

    A large file may come through Xet. A small one is asked for at once:
    `hf_hub_download` would ask for its hash first, which the listing has.
    """
    from huggingface_hub import hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers

    place: dict[str, Any] = {"repo_type": "dataset", "revision": commit}
    if file.size > _LARGE:
        api = client.api
        downloaded = api.hf_hub_download(
            client.repo, file.path, local_dir=folder, **place
        )
        return Path(downloaded)
    url = hf_hub_url(client.repo, file.path, endpoint=client.api.endpoint, **place)
    target = folder / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target, "wb") as stream:
        http_get(url, stream, headers=build_hf_headers())
    return target
