"""Ask the Hub which files a commit has, and take its answer for hostile."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from generator.hub.client import Client, RemoteFile, remote_files
from generator.hub.failures import HubFailure
from generator.hub.names import bad_path, collisions, is_of_dataset
from generator.problems.messages import one_line

MAX_FILES = 1_000_000
_SHA1 = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MIB = 1024 * 1024
_LARGEST = {"blob": 64 * 1024 * _MIB}
_LARGEST_OTHER = 256 * _MIB


@dataclass(frozen=True)
class Listing:
    """Hold the dataset's files in one commit, by path.

    `refused` are paths that are written nowhere, with why; `others` are files outside
    of the dataset's folders.
    """

    commit: str
    files: dict[str, RemoteFile]
    refused: dict[str, str]
    others: dict[str, RemoteFile]


def is_commit(text: str) -> bool:
    """Return whether a text is a commit's id."""
    return _SHA1.fullmatch(text) is not None


def list_files(client: Client, revision: str) -> Listing:
    """Return what a branch, a tag, refs/pr/N or a commit has. Raises HubFailure."""
    commit = client.head(revision)
    if not is_commit(commit):
        raise HubFailure(f"The Hub names no commit for {one_line(revision, 100)}.")
    return client.call(lambda: _listed(client, commit), revision)


def _listed(client: Client, commit: str) -> Listing:
    found: list[RemoteFile] = []
    for entry in client.api.list_repo_tree(
        client.repo, recursive=True, revision=commit, repo_type="dataset"
    ):
        found += remote_files([entry])
        if len(found) > MAX_FILES:
            raise ValueError(f"over {MAX_FILES} files")
    return listing_of(commit, found)


def listing_of(commit: str, files: Iterable[RemoteFile]) -> Listing:
    """Return a listing of files as the Hub names them.

    Raises ValueError for what is no path, size or hash.
    """
    every: dict[str, RemoteFile] = {}
    refused: dict[str, str] = {}
    for file in files:
        _check(file)
        largest = _LARGEST.get(file.path.split("/")[0], _LARGEST_OTHER)
        reason = bad_path(file.path)
        if not is_of_dataset(file.path) and not file.path.startswith(("/", "..")):
            # never written anywhere: a .gitattributes at the top is no harm
            reason = ""
        if file.path in every:
            reason = "is listed twice"
        elif not reason and file.size > largest:
            reason = f"has {file.size / _MIB:,.0f} MiB, over {largest // _MIB:,} MiB"
        if reason:
            refused[file.path] = reason
        every[file.path] = file
    for path, other in collisions(every.keys() - refused.keys()).items():
        refused[path] = f"takes the place of {one_line(other, 200)} on some systems"
    good = {p: f for p, f in sorted(every.items()) if p not in refused}
    return Listing(
        commit,
        {path: file for path, file in good.items() if is_of_dataset(path)},
        dict(sorted(refused.items())),
        {path: file for path, file in good.items() if not is_of_dataset(path)},
    )


def _check(file: RemoteFile) -> None:
    if not (isinstance(file.path, str) and isinstance(file.size, int)) or file.size < 0:
        raise ValueError("a listing without paths or sizes")
    hashes = [(_SHA1, file.sha1), (_SHA256, file.sha256)]
    if file.sha256 is None:
        del hashes[1]
    if not all(isinstance(h, str) and kind.fullmatch(h) for kind, h in hashes):
        raise ValueError("a listing without hashes")
