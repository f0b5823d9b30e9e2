"""Write rendered files atomically, and never overwrite a person's edits."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from generator.dataset.atomic_write import write_atomically

SUMS = "SHA256SUMS"
_RENDERED_PATH = re.compile(r"(\w+/)*\w+\.(py|ini)")


class FileStatus(str, Enum):
    """The outcome of one file; under --check, the outcome that a run would have."""

    UNCHANGED = "unchanged"
    WRITTEN = "written"
    REMOVED = "removed"
    EDITED = "edited"
    DRIFTED = "drifted"


@dataclass(frozen=True)
class FileOutcome:
    """Hold a file's path, relative to the output folder, and its status."""

    path: str
    status: FileStatus


def write_files(
    output: Path,
    files: Mapping[str, str],
    *,
    force: bool = False,
    check: bool = False,
    complete: bool = False,
) -> list[FileOutcome]:
    """Write files into a folder; return the status of each.

    SHA256SUMS (`sha256sum -c` reads it) holds the hashes of what was written last. A
    file with another hash was edited by a person, and only `force` overwrites it.
    `complete` removes files that are no longer rendered. `check` writes nothing. Raises
    OSError with the file's name if writing fails.
    """
    recorded = read_sums(output)
    sums = dict(recorded)
    contents = {path: text.encode("utf-8") for path, text in sorted(files.items())}
    # read all files before the first write: an error then changes nothing
    outcomes = [
        FileOutcome(
            path, _status(output / path, content, recorded.get(path), force, check)
        )
        for path, content in contents.items()
    ]
    for path, status in ((o.path, o.status) for o in outcomes):
        if status in (FileStatus.WRITTEN, FileStatus.UNCHANGED):
            sums[path] = hashlib.sha256(contents[path]).hexdigest()
        if status is FileStatus.WRITTEN:
            write_atomically(output / path, contents[path])
            # at once: if this process is killed, the file must not count as edited
            write_atomically(output / SUMS, format_sums(sums))
    if complete:
        for path in sorted(set(recorded) - set(files)):
            gone = _remove(output / path, path, recorded[path], force, check)
            outcomes += gone
            # an edited file stays listed, so that the next run reports it as well
            if not any(outcome.status is FileStatus.EDITED for outcome in gone):
                del sums[path]
    if not check and sums != recorded:
        write_atomically(output / SUMS, format_sums(sums))
    return outcomes


def _status(
    path: Path, content: bytes, recorded: str | None, force: bool, check: bool
) -> FileStatus:
    try:
        present = path.read_bytes()
    except FileNotFoundError:
        return FileStatus.DRIFTED if check else FileStatus.WRITTEN
    if present == content:
        return FileStatus.UNCHANGED
    if hashlib.sha256(present).hexdigest() != recorded and not force:
        return FileStatus.EDITED
    return FileStatus.DRIFTED if check else FileStatus.WRITTEN


def _remove(
    path: Path, name: str, recorded: str, force: bool, check: bool
) -> list[FileOutcome]:
    try:
        present = path.read_bytes()
    except FileNotFoundError:
        return []
    if hashlib.sha256(present).hexdigest() != recorded and not force:
        return [FileOutcome(name, FileStatus.EDITED)]
    if check:
        return [FileOutcome(name, FileStatus.DRIFTED)]
    path.unlink()
    return [FileOutcome(name, FileStatus.REMOVED)]


def read_sums(output: Path) -> dict[str, str]:
    """Return path → SHA-256 of what was written last, by a folder's SHA256SUMS."""
    try:
        lines = (output / SUMS).read_text("utf-8").splitlines()
    except (FileNotFoundError, UnicodeDecodeError):
        return {}
    pairs = (line.split("  ", 1) for line in lines if "  " in line)
    return {path: digest for digest, path in pairs if _is_inside(path)}


def _is_inside(path: str) -> bool:
    """Return whether a listed path can be a rendered file.

    The list is not trusted: other paths are neither read nor removed.
    """
    return _RENDERED_PATH.fullmatch(path) is not None


def format_sums(sums: Mapping[str, str]) -> bytes:
    """Return the text of SHA256SUMS, which `sha256sum -c` reads."""
    lines = (f"{digest}  {path}\n" for path, digest in sorted(sums.items()))
    return "".join(lines).encode("utf-8")
