"""Remember what was pulled into a dataset's folder, to tell it from a person's edits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generator.files import write_atomically
from generator.hub.client import RemoteFile
from generator.hub.listing import Listing, listing_of

FOLDER = ".trace-dataset"
INCOMING = f"{FOLDER}/incoming"
_FILES = f"{FOLDER}/pull.json"
_LISTING = f"{FOLDER}/listing.json"
_FORMAT = 1


@dataclass
class State:
    """Hold path → the digests that were pulled, the last one last.

    Before files are placed their new digests are added, so that a run that is killed
    never leaves one that would pass for edited.
    """

    files: dict[str, list[str]] = field(default_factory=dict)

    def expect(self, path: str, digest: str) -> None:
        """Add a digest that a file is about to have."""
        known = self.files.setdefault(path, [])
        if digest in known:
            known.remove(digest)
        known.append(digest)

    def settle(self, path: str, digest: str) -> None:
        """Say that a file has a digest, and no older one."""
        self.files[path] = [digest]

    def knows(self, path: str, digest: str) -> bool:
        """Return whether a file with this digest was pulled once."""
        return digest in self.files.get(path, ())


def read_state(root: Path) -> State:
    """Return what was pulled; nothing where the record is missing or no record.

    Without a record what differs from the Hub passes for edited, which is safe.
    """
    value = _read(root / _FILES)
    files = value.get("files")
    if value.get("format") != _FORMAT or not isinstance(files, dict):
        return State()
    return State(
        {
            path: [digest for digest in digests if isinstance(digest, str)]
            for path, digests in files.items()
            if isinstance(digests, list)
        }
    )


def write_state(root: Path, state: State) -> None:
    """Write the record. Raises OSError."""
    files = dict(sorted(state.files.items()))
    _write(root / _FILES, {"format": _FORMAT, "files": files})
    ignore = root / FOLDER / ".gitignore"
    if not ignore.exists():
        write_atomically(ignore, b"*\n")


def keep_listing(root: Path, repo: str, revision: str, listing: Listing) -> None:
    """Keep a listing for a time without network. Raises OSError."""
    value = {"repo": repo, "revision": revision, **listing.as_dict()}
    _write(root / _LISTING, {"format": _FORMAT, **value})


def kept_listing(root: Path, repo: str, revision: str) -> Listing | None:
    """Return the listing of the last pull, None where that was of something else."""
    value = _read(root / _LISTING)
    same = (value.get("repo"), value.get("revision")) == (repo, revision)
    if value.get("format") != _FORMAT or not same:
        return None
    try:
        files = [RemoteFile(**file) for file in value["files"]]
        return listing_of(str(value["commit"]), files)
    except (KeyError, TypeError, ValueError):
        return None


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _write(path: Path, value: Mapping[str, Any]) -> None:
    write_atomically(path, json.dumps(value).encode("ascii"))
