"""Write rendered files atomically, and never overwrite a person's edits."""

from __future__ import annotations

import errno
import hashlib
import re
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from generator.dataset.atomic_write import remove_below, write_below
from generator.dataset.file_reading import (
    MOST,
    entries,
    is_folder,
    place_below,
    read_bytes,
)
from generator.dataset.lock import locked

SUMS = "SHA256SUMS"
MOST_RENDERED = 16 * 1024 * 1024
"""Bytes of the largest file that is compared; a rendered one has a few MiB at most."""

_TEST = re.compile(r"test_.*\.py")
_RENDERED_PATH = re.compile(r"(\w+/)*\w+\.(py|ini)")


class FileStatus(str, Enum):
    """The outcome of one file; under --check, the outcome that a run would have."""

    UNCHANGED = "unchanged"
    WRITTEN = "written"
    REMOVED = "removed"
    EDITED = "edited"
    DRIFTED = "drifted"
    KEPT = "kept"


@dataclass(frozen=True)
class FileOutcome:
    """A file's path, relative to the output folder, and its status.

    `has_crlf` says of an edited file that nothing but its line ends was changed.
    """

    path: str
    status: FileStatus
    has_crlf: bool = False


def write_files(
    output: Path,
    files: Mapping[str, str],
    *,
    dataset: Path | None = None,
    force: bool = False,
    check: bool = False,
    complete: bool = False,
) -> list[FileOutcome]:
    """Write files into a folder; return the status of each.

    SHA256SUMS (`sha256sum -c` reads it) holds the hashes of what was written last. A
    file with another hash was edited by a person, and only `force` overwrites it.
    `complete` removes files that are no longer rendered. `check` writes nothing. No link
    below `dataset` is followed, where `output` lies in it. Raises OSError with the file's
    name if reading or writing fails.
    """
    root, way = place_below(dataset or output, output)
    prefix = f"{way}/" if way else ""
    # a check waits for nobody: it reads
    with nullcontext() if check else locked(root):
        return _written(root, prefix, files, force, check, complete)


def _written(
    root: Path,
    prefix: str,
    files: Mapping[str, str],
    force: bool,
    check: bool,
    complete: bool,
) -> list[FileOutcome]:
    recorded = read_sums(root, prefix.rstrip("/"))
    sums = dict(recorded)
    contents = {path: text.encode("utf-8") for path, text in sorted(files.items())}
    # read all files before the first write: an error then changes nothing
    outcomes = [
        _outcome(root, prefix, path, content, recorded.get(path), force, check)
        for path, content in contents.items()
    ]
    for path, status in ((o.path, o.status) for o in outcomes):
        if status in (FileStatus.WRITTEN, FileStatus.UNCHANGED):
            sums[path] = hashlib.sha256(contents[path]).hexdigest()
        if status is FileStatus.WRITTEN:
            write_below(root, prefix + path, contents[path])
            # at once: if this process is killed, the file must not count as edited
            write_below(root, prefix + SUMS, format_sums(sums))
    if complete:
        for path in sorted(set(recorded) - set(files)):
            gone = _remove(root, prefix + path, path, recorded[path], force, check)
            outcomes += gone
            # an edited file stays listed, so that the next run reports it as well
            if not any(outcome.status is FileStatus.EDITED for outcome in gone):
                del sums[path]
    if not check and sums != recorded:
        write_below(root, prefix + SUMS, format_sums(sums))
    return outcomes


def _there(root: Path, path: str, most: int) -> bytes | None:
    """Return what lies at a path; None for nothing. Raises OSError for what can't be read.

    More than `most` bytes are no rendered file: they are not read.
    """
    try:
        return read_bytes(root, path, most)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.EFBIG:
            return b"\0"
        raise OSError(error.errno, error.strerror, str(root / path)) from error


def _outcome(
    root: Path,
    prefix: str,
    path: str,
    content: bytes,
    recorded: str | None,
    force: bool,
    check: bool,
) -> FileOutcome:
    present = _there(root, prefix + path, max(MOST_RENDERED, 2 * len(content)))
    if present == content:
        return FileOutcome(path, FileStatus.UNCHANGED)
    is_mine = present is None or hashlib.sha256(present).hexdigest() == recorded
    if present is not None and not is_mine and not force:
        has_crlf = present.replace(b"\r\n", b"\n") == content
        return FileOutcome(path, FileStatus.EDITED, has_crlf)
    return FileOutcome(path, FileStatus.DRIFTED if check else FileStatus.WRITTEN)


def _remove(
    root: Path, path: str, name: str, recorded: str, force: bool, check: bool
) -> list[FileOutcome]:
    present = _there(root, path, MOST)
    if present is None:
        return []
    if hashlib.sha256(present).hexdigest() != recorded and not force:
        return [FileOutcome(name, FileStatus.EDITED)]
    if check:
        return [FileOutcome(name, FileStatus.DRIFTED)]
    remove_below(root, path)
    return [FileOutcome(name, FileStatus.REMOVED)]


def tests_of_others(root: Path, folder: str) -> list[str]:
    """Return the names of tests in a folder that no rendering wrote, sorted."""
    if not is_folder(root, folder):
        return []
    ours = read_sums(root, folder)
    names = [entry.name for entry in entries(root, folder)]
    return sorted(n for n in names if _TEST.fullmatch(n) and n not in ours)


def read_sums(root: Path, folder: str = "") -> dict[str, str]:
    """Return path → SHA-256 of what was written last, by a folder's SHA256SUMS.

    Raises OSError where it is there and can't be read, as a link can't.
    """
    path = f"{folder}/{SUMS}" if folder else SUMS
    data = _there(root, path, MOST_RENDERED)
    try:
        lines = (data or b"").decode("utf-8").splitlines()
    except UnicodeDecodeError:
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
