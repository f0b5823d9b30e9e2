"""Fetch one file of a repository with huggingface_hub, and check the hash of its bytes.

`hf_hub_download` continues after a cut and waits after 429 by itself. It compares sizes,
not hashes, and it deletes an older file before the new one is complete: so files are
downloaded into a folder of their own and hashed there.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from generator.hub.client import Client, RemoteFile
from generator.hub.failures import HubFailure
from generator.problems.messages import one_line

_PIECE = 1 << 20


def digest_of(path: Path, file: RemoteFile) -> str:
    """Return a local file's digest, of the kind that the listing has; raises OSError."""
    made = hashlib.sha256()
    if not file.sha256:
        head = b"blob %d\0" % os.stat(path).st_size
        made = hashlib.sha1(head, usedforsecurity=False)
    with open(path, "rb") as stream:
        while piece := stream.read(_PIECE):
            made.update(piece)
    return f"{'sha256' if file.sha256 else 'git'}:{made.hexdigest()}"


def fetch(client: Client, commit: str, file: RemoteFile, folder: Path) -> Path:
    """Download a file to its path below `folder`; return that path.

    Content with another hash is downloaded once more. Raises HubFailure, and OSError
    where it can't be written.
    """
    for _ in range(2):
        found = Path(
            client.call(
                lambda: client.api.hf_hub_download(
                    client.repo,
                    file.path,
                    repo_type="dataset",
                    revision=commit,
                    local_dir=folder,
                )
            )
        )
        is_whole = found.stat().st_size == file.size
        if is_whole and digest_of(found, file) == file.digest:
            return found
        found.unlink()
    raise HubFailure(
        f"{one_line(file.path)} arrives with other bytes than the Hub lists, twice: "
        "run it again later."
    )
