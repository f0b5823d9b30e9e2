"""Fetch one file of a repository: what arrives is what the listing's hash says.

Bytes go to a file of their own beside the dataset, which a later run goes on with after
a cut; the dataset sees the whole file, by a rename, or nothing.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import quote

from generator.hub.client import Client, RemoteFile
from generator.hub.failures import HubFailure, is_network, status_of
from generator.wording import one_line

if TYPE_CHECKING:
    from hashlib import _Hash

_PIECE = 1 << 20
_SECONDS = 30.0


def digest_of(path: Path, file: RemoteFile) -> str:
    """Return a local file's digest, of the kind that the listing has; raises OSError."""
    made = _hash(file, os.stat(path).st_size)
    with open(path, "rb") as stream:
        while piece := stream.read(_PIECE):
            made.update(piece)
    return f"{'sha256' if file.sha256 else 'git'}:{made.hexdigest()}"


def _hash(file: RemoteFile, size: int) -> _Hash:
    if file.sha256:
        return hashlib.sha256()
    return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)


def fetch(client: Client, commit: str, file: RemoteFile, part: Path) -> None:
    """Bring a file's whole content to `part`, going on with what is there.

    Content with another hash is fetched once more, then given up. Raises HubFailure, and
    OSError where it can't be written.
    """
    part.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(2):
        _fetch(client, commit, file, part)
        if digest_of(part, file) == file.digest:
            return
        part.unlink()
    raise HubFailure(
        f"{one_line(file.path)} arrives with other bytes than the Hub lists, twice: "
        "run it again later."
    )


def _fetch(client: Client, commit: str, file: RemoteFile, part: Path) -> None:
    """Fetch what is missing; only attempts that bring nothing new are counted."""
    attempt = best = 0
    while True:
        start = _size(part)
        if start is not None and start > file.size:
            part.unlink()
            start = None
        if start == file.size:
            return
        error: Exception = ConnectionError("the answer is too short")
        try:
            _ask(client, commit, file, part, start or 0)
        except HubFailure:
            raise
        except Exception as caught:
            # a full disk is none of the Hub's doing
            of_hub = status_of(caught) is not None or is_network(caught)
            if isinstance(caught, OSError) and not of_hub:
                raise
            error = caught
        now = _size(part)
        if now != file.size:
            # more than ever before: a server that starts anew each time ends, too
            attempt = 1 if (now or 0) > max(best, start or 0) else attempt + 1
            best = max(best, now or 0, start or 0)
            client.wait_after(error, attempt, commit)


def _size(part: Path) -> int | None:
    try:
        return part.stat().st_size
    except FileNotFoundError:
        return None


def _ask(client: Client, commit: str, file: RemoteFile, part: Path, start: int) -> None:
    from huggingface_hub.utils import (
        build_hf_headers,
        get_session,
        hf_raise_for_status,
    )

    place = f"{client.api.endpoint}/datasets/{client.repo}/resolve/{commit}"
    # compressed on the way, a part would not be one of the file
    headers: dict[str, Any] = {**build_hf_headers(), "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    with get_session().stream(
        "GET", f"{place}/{quote(file.path)}", headers=headers, timeout=_SECONDS
    ) as response:
        hf_raise_for_status(response)
        goes_on = start > 0 and response.status_code == 206
        with open(part, "ab" if goes_on else "wb") as stream:
            _receive(response, stream, file.size - (start if goes_on else 0), file)


def _receive(response: Any, stream: BinaryIO, room: int, file: RemoteFile) -> None:
    # as they come: what is gathered first is lost with the connection
    for piece in response.iter_bytes():
        room -= len(piece)
        if room < 0:
            stream.truncate(0)
            raise HubFailure(
                f"{one_line(file.path)} arrives with more than the {file.size} bytes "
                "that the Hub lists."
            )
        stream.write(piece)
