"""Ask the Hub what a dataset's repository has, and take its answers for hostile."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from generator.hub.errors import HubError, hub_errors, need_client
from generator.hub.names import bad_path, collisions, is_of_dataset
from generator.wording import one_line, quote

KIND = "dataset"
MAX_FILES = 1_000_000
_SHA1 = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MIB = 1024 * 1024
_LARGEST = {"blob": 64 * 1024 * _MIB}
_LARGEST_OTHER = 256 * _MIB


@dataclass(frozen=True)
class RemoteFile:
    """Hold one file of a listing, in bytes and hashes.

    `oid` is git's id of the blob, or of its LFS pointer; `sha256` is empty for a file
    that is not in LFS.
    """

    path: str
    size: int
    oid: str
    sha256: str = ""

    @property
    def digest(self) -> str:
        """Return the hash that the content must have."""
        return f"sha256:{self.sha256}" if self.sha256 else f"git:{self.oid}"


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

    def as_dict(self) -> dict[str, Any]:
        """Return what `listing_of` takes, as plain JSON values."""
        every = (*self.files.values(), *self.others.values())
        return {"commit": self.commit, "files": [asdict(file) for file in every]}


@dataclass(frozen=True)
class Remote:
    """Know one dataset repository of the Hub."""

    repo: str

    def commit_of(self, revision: str) -> str:
        """Return the commit of a branch, a tag, refs/pr/N or a commit."""
        api = self._api()
        with hub_errors(self.repo, f"revision {quote(revision)}"):
            info = api.dataset_info(self.repo, revision=revision, expand=["sha"])
            return _matching(_SHA1, info.sha)

    def listing(self, commit: str) -> Listing:
        """Return the files of a commit."""
        api = self._api()
        with hub_errors(self.repo, f"commit {commit}"):
            found: list[RemoteFile] = []
            entries = api.list_repo_tree(
                self.repo, recursive=True, revision=commit, repo_type=KIND
            )
            for entry in entries:
                if hasattr(entry, "blob_id"):
                    lfs = getattr(entry, "lfs", None)
                    sha256 = "" if lfs is None else _matching(_SHA256, lfs.sha256)
                    oid = _matching(_SHA1, entry.blob_id)
                    found.append(RemoteFile(entry.path, entry.size, oid, sha256))
                if len(found) > MAX_FILES:
                    raise HubError(f"The dataset has over {MAX_FILES} files.")
            return listing_of(commit, found)

    def pull_request(self, number: int) -> Any:
        """Return what the Hub says of a pull request."""
        api = self._api()
        with hub_errors(self.repo, f"pull request {number}"):
            return api.get_discussion_details(self.repo, number, repo_type=KIND)

    def commits(self, revision: str) -> list[str]:
        """Return the commits of a revision, the newest first."""
        api = self._api()
        with hub_errors(self.repo, f"revision {quote(revision)}"):
            listed = api.list_repo_commits(self.repo, revision=revision, repo_type=KIND)
            return [_matching(_SHA1, commit.commit_id) for commit in listed]

    def _api(self) -> Any:
        need_client()
        from huggingface_hub import HfApi

        return HfApi()


def listing_of(commit: str, files: Iterable[RemoteFile]) -> Listing:
    """Return a listing of files as the Hub names them. Raises ValueError."""
    every: dict[str, RemoteFile] = {}
    refused: dict[str, str] = {}
    for file in files:
        if not isinstance(file.path, str) or not _is_size(file.size):
            raise ValueError("a listing without paths or sizes")
        largest = _LARGEST.get(file.path.split("/")[0], _LARGEST_OTHER)
        reason = bad_path(file.path)
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


def _is_size(size: object) -> bool:
    return isinstance(size, int) and size >= 0


def _matching(pattern: re.Pattern[str], text: object) -> str:
    if not isinstance(text, str) or not pattern.fullmatch(text):
        raise ValueError("an id that is none")
    return text
