"""Fetch one file of a repository: what arrives is what the listing's hash says.

Bytes go to a file of their own beside the dataset, which a later run goes on with after
a cut; the dataset sees the whole file, by a rename, or nothing.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import quote

from generator.hub.errors import HubError, hub_errors, transport_errors
from generator.hub.remote import Remote, RemoteFile
from generator.wording import one_line

if TYPE_CHECKING:
    from hashlib import _Hash

_PIECE = 1 << 20
_ATTEMPTS = 5
_SECONDS = 30.0
_WAIT = 1.0


def hash_of(file: RemoteFile) -> _Hash:
    """Return the hash that is to be fed with a file's content."""
    if file.sha256:
        return hashlib.sha256()
    return hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)


def digest_of(path: Path, file: RemoteFile) -> str:
    """Return a local file's digest of the listing's kind; raises OSError.

    A file of another size has one as well, which is not the listing's.
    """
    size = os.stat(path).st_size
    made = hash_of(RemoteFile(file.path, size, file.oid, file.sha256))
    with open(path, "rb") as stream:
        while piece := stream.read(_PIECE):
            made.update(piece)
    return f"{'sha256' if file.sha256 else 'git'}:{made.hexdigest()}"


def fetch(remote: Remote, commit: str, file: RemoteFile, part: Path) -> None:
    """Bring a file's whole content to `part`, going on with what is there.

    Content with another hash is fetched once more, then given up. Raises HubError, and
    OSError where it can't be written.
    """
    for _ in range(2):
        with hub_errors(remote.repo, f"file {one_line(file.path)}"):
            _fetch(remote, commit, file, part)
        if digest_of(part, file) == file.digest:
            return
        part.unlink()
    raise HubError(
        f"{one_line(file.path)} arrives with other bytes than the Hub lists, twice: "
        "run it again later."
    )


def _fetch(remote: Remote, commit: str, file: RemoteFile, part: Path) -> None:
    """Fetch what is missing; a connection that brings nothing new is given up."""
    left = _ATTEMPTS
    part.parent.mkdir(parents=True, exist_ok=True)
    while True:
        before = part.stat().st_size if part.exists() else 0
        if before > file.size:
            part.unlink()
            before = 0
        if before == file.size and part.exists():
            return
        try:
            _ask(remote, commit, file, part, before)
            if part.stat().st_size == file.size:
                return
            error: Exception = ConnectionError("the answer is too short")
        except transport_errors() as cut:
            # what the Hub answered is final: the client has tried that again itself
            if hasattr(cut, "response"):
                raise
            error = cut
        got = part.stat().st_size if part.exists() else 0
        left = _ATTEMPTS if got > before else left - 1
        if not left:
            raise error
        time.sleep(_WAIT)


def _ask(remote: Remote, commit: str, file: RemoteFile, part: Path, start: int) -> None:
    from huggingface_hub import constants
    from huggingface_hub.utils import (
        build_hf_headers,
        hf_raise_for_status,
        http_stream_backoff,
    )

    where = f"{constants.ENDPOINT}/datasets/{remote.repo}/resolve/{commit}"
    headers: dict[str, Any] = {**build_hf_headers(), "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    # a cut connection is taken up again above, where the bytes are known
    with http_stream_backoff(
        "GET",
        f"{where}/{quote(file.path)}",
        headers=headers,
        timeout=_SECONDS,
        retry_on_exceptions=(),
    ) as response:
        hf_raise_for_status(response)
        goes_on = start > 0 and response.status_code == 206
        with open(part, "ab" if goes_on else "wb") as stream:
            _receive(response, stream, file.size - (start if goes_on else 0), file)


def _receive(response: Any, stream: BinaryIO, room: int, file: RemoteFile) -> None:
    for piece in response.iter_bytes(chunk_size=_PIECE):
        room -= len(piece)
        if room < 0:
            stream.truncate(0)
            raise HubError(
                f"{one_line(file.path)} arrives with more than the {file.size} bytes "
                "that the Hub lists."
            )
        stream.write(piece)
