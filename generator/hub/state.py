"""Remember what was pulled into a dataset's folder, to tell it from a person's edits."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from generator.dataset.atomic_write import write_atomically
from generator.hub.remote import Listing, RemoteFile, listing_of

FOLDER = ".trace-dataset"
INCOMING = f"{FOLDER}/incoming"
_RECORD = f"{FOLDER}/pull.json"
_FORMAT = 1


@dataclass
class PullState:
    """Hold path → the digests that were pulled, and the last listing.

    The new digests of files are added before the files are placed, so that after a kill
    none of them passes for edited. `listing` serves a pull without a network.
    """

    files: dict[str, list[str]] = field(default_factory=dict)
    listing: dict[str, Any] = field(default_factory=dict)

    def keep(self, repo: str, revision: str, listing: Listing) -> None:
        """Keep the listing of a revision."""
        every = (*listing.files.values(), *listing.others.values())
        files = [asdict(file) for file in every]
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

    Without a record what differs from the Hub passes for edited, which is safe.
    """
    try:
        value = json.loads((root / _RECORD).read_bytes())
        files = {path: list(map(str, known)) for path, known in value["files"].items()}
        listing = dict(value["listing"])
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return PullState()
    return PullState(files, listing) if value.get("format") == _FORMAT else PullState()


def write_state(root: Path, state: PullState) -> None:
    """Write the record. Raises OSError."""
    files = dict(sorted(state.files.items()))
    value = {"format": _FORMAT, "files": files, "listing": state.listing}
    write_atomically(root / _RECORD, json.dumps(value).encode("ascii"))
    write_atomically(root / FOLDER / ".gitignore", b"*\n")
