"""Write rendered files: whole or not at all, and never over a person's work."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

SUMS = "SHA256SUMS"
_RENDERED_PATH = re.compile(r"(\w+/)?\w+\.(py|ini)")


class Status(str, Enum):
    """What became of one file, or under --check what would."""

    UNCHANGED = "unchanged"
    WRITTEN = "written"
    REMOVED = "removed"
    EDITED = "edited"
    DRIFTED = "drifted"


@dataclass(frozen=True)
class Outcome:
    """Name a file, relative to the output folder, and what became of it."""

    path: str
    status: Status


def write_files(
    output: Path,
    files: Mapping[str, str],
    *,
    force: bool = False,
    check: bool = False,
    complete: bool = False,
) -> list[Outcome]:
    """Bring a folder to the rendered state; return what became of each file.

    SHA256SUMS (`sha256sum -c` reads it) says what was written last: a file that is
    something else was edited by a person and is left alone without `force`. With
    `complete`, files that were rendered once and are not any more are removed. `check`
    writes nothing. Raises OSError, with the file's name, where writing fails.
    """
    recorded = _read_sums(output)
    sums = dict(recorded)
    contents = {path: text.encode("utf-8") for path, text in sorted(files.items())}
    # all are looked at before one is written: what is in the way stops everything
    outcomes = [
        Outcome(path, _status(output / path, content, recorded.get(path), force, check))
        for path, content in contents.items()
    ]
    for path, status in ((o.path, o.status) for o in outcomes):
        if status in (Status.WRITTEN, Status.UNCHANGED):
            sums[path] = hashlib.sha256(contents[path]).hexdigest()
        if status is Status.WRITTEN:
            write_atomically(output / path, contents[path])
            # at once: after a kill, what was written must not pass for edited
            write_atomically(output / SUMS, _format_sums(sums))
    if complete:
        for path in sorted(set(recorded) - set(files)):
            gone = _remove(output / path, path, recorded[path], force, check)
            outcomes += gone
            # one that was edited stays on record, to be reported until it is gone
            if not any(outcome.status is Status.EDITED for outcome in gone):
                del sums[path]
    if not check and sums != recorded:
        write_atomically(output / SUMS, _format_sums(sums))
    return outcomes


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a kill, sees the old one or the new one.

    Raises OSError with the file's own name, whichever step failed.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_bytes(content)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        # a full disk names no file, and nobody knows the temporary one
        raise OSError(error.errno, error.strerror, str(path)) from error


def _status(
    path: Path, content: bytes, recorded: str | None, force: bool, check: bool
) -> Status:
    try:
        present = path.read_bytes()
    except FileNotFoundError:
        return Status.DRIFTED if check else Status.WRITTEN
    if present == content:
        return Status.UNCHANGED
    if hashlib.sha256(present).hexdigest() != recorded and not force:
        return Status.EDITED
    return Status.DRIFTED if check else Status.WRITTEN


def _remove(
    path: Path, name: str, recorded: str, force: bool, check: bool
) -> list[Outcome]:
    try:
        present = path.read_bytes()
    except FileNotFoundError:
        return []
    if hashlib.sha256(present).hexdigest() != recorded and not force:
        return [Outcome(name, Status.EDITED)]
    if check:
        return [Outcome(name, Status.DRIFTED)]
    path.unlink()
    return [Outcome(name, Status.REMOVED)]


def _read_sums(output: Path) -> dict[str, str]:
    try:
        lines = (output / SUMS).read_text("utf-8").splitlines()
    except (FileNotFoundError, UnicodeDecodeError):
        return {}
    pairs = (line.split("  ", 1) for line in lines if "  " in line)
    return {path: digest for digest, path in pairs if _is_inside(path)}


def _is_inside(path: str) -> bool:
    """Return whether a recorded path is one of a file that was rendered.

    A record is not trusted: what else it names is neither looked at nor removed.
    """
    return _RENDERED_PATH.fullmatch(path) is not None


def _format_sums(sums: Mapping[str, str]) -> bytes:
    lines = (f"{digest}  {path}\n" for path, digest in sorted(sums.items()))
    return "".join(lines).encode("utf-8")
