"""Read a JSON or JSON Lines file: a value or Problems, never an exception."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.jsonparse import Parsed, parse
from generator.lfs import LFS_MAGIC
from generator.problems import Problem
from generator.reading import opened, read_at_most
from generator.rules.limit import MAX_PROBLEMS, limited
from generator.rules.table import finding
from generator.wording import one_line

MAX_BYTES = 16 * 1024 * 1024
"""Largest file that is read; real ones have a few hundred KiB at most."""

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class JsonFile:
    """Hold one file's value; `ok` is False where there is none.

    `sha256` is the digest of the file's bytes, empty if they could not be read.
    """

    value: Any
    problems: tuple[Problem, ...]
    ok: bool
    sha256: str = ""


@dataclass(frozen=True)
class JsonLines:
    """Hold the values of a JSON Lines file with the number of each one's line.

    `count` is the number of lines that are not empty, whether they parse or not.
    """

    lines: tuple[tuple[int, Any], ...]
    problems: tuple[Problem, ...]
    count: int = 0


def read_json(root: Path, file: str, max_bytes: int = MAX_BYTES) -> JsonFile:
    """Read the JSON file `file`, a path relative to `root`.

    Raises nothing: what is wrong is in `problems`.
    """
    data = _read_bytes(root / file, file, max_bytes)
    if isinstance(data, Problem):
        return JsonFile(None, (data,), ok=False)
    digest = hashlib.sha256(data).hexdigest()
    parsed = _parse_bytes(data, file, None)
    return JsonFile(parsed.value, parsed.problems, parsed.ok, digest)


def read_json_lines(root: Path, file: str, max_bytes: int = MAX_BYTES) -> JsonLines:
    """Read the JSON Lines file `file`, a path relative to `root`.

    A line that is wrong does not hide those after it.
    """
    data = _read_bytes(root / file, file, max_bytes)
    if isinstance(data, Problem):
        return JsonLines((), (data,))
    if not data.strip():
        return JsonLines((), ())
    lines: list[tuple[int, Any]] = []
    problems: list[Problem] = []
    count = 0
    # Not splitlines(): JSON strings may hold U+2028 and the like as they are.
    for number, raw in enumerate(data.rstrip().split(b"\n"), start=1):
        if len(problems) > MAX_PROBLEMS:
            break
        if not raw.strip():
            message = f"Line {number} is empty."
            problems.append(finding("jsonl-blank-line", file, message, line=number))
            continue
        count += 1
        parsed = _parse_bytes(raw, file, number)
        problems.extend(parsed.problems)
        if parsed.ok:
            lines.append((number, parsed.value))
    return JsonLines(tuple(lines), limited(problems, file), count)


def _read_bytes(path: Path, file: str, max_bytes: int) -> bytes | Problem:
    try:
        status = os.stat(path)
        # Asked before opening: opening a FIFO would wait for a writer.
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a device or a pipe"
            return finding("file-not-regular", file, f"This is {kind}, not a file.")
        if status.st_size > max_bytes:
            return _too_large(file, status.st_size, max_bytes)
        with opened(path) as descriptor:
            data = read_at_most(descriptor, max_bytes + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"The file can't be read: {one_line(reason)}."
        return finding("file-unreadable", file, message)
    if len(data) > max_bytes:
        return _too_large(file, len(data), max_bytes)
    if data.startswith(LFS_MAGIC):
        message = "The file is a Git LFS pointer: the data itself was not fetched."
        return finding("file-lfs-pointer", file, message)
    return data


def _too_large(file: str, size: int, max_bytes: int) -> Problem:
    mib = 1024 * 1024
    message = (
        f"The file has at least {size / mib:.1f} MiB, more than the "
        f"{max_bytes / mib:.0f} MiB that are read."
    )
    return finding("file-too-large", file, message)


def _parse_bytes(data: bytes, file: str, line: int | None) -> Parsed:
    bom: tuple[Problem, ...] = ()
    if data.startswith(_BOM) and line in (None, 1):
        data = data[len(_BOM) :]
        message = "The file begins with a byte order mark."
        bom = (finding("json-bom", file, message, line=line),)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = data.count(b"\n", 0, error.start) + 1 if line is None else line
        message = (
            f"Byte {error.start} is 0x{data[error.start]:02x}, which is not UTF-8 here."
        )
        return Parsed(
            None,
            (*bom, finding("json-encoding", file, message, line=place)),
            ok=False,
        )
    parsed = parse(text, file, line)
    return Parsed(parsed.value, bom + parsed.problems, parsed.ok)
