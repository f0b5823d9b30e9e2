"""Read a JSON or JSON Lines file strictly: a value or Problems, never an exception."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from generator.dataset.file_reading import LFS_MAGIC, opened, read_at_most
from generator.problems import Problem
from generator.problems.limit import MAX_PROBLEMS, limited
from generator.problems.messages import one_line, plural, quote
from generator.problems.pointer import pointer
from generator.problems.rule import Rule, blocking, warning

FILE_UNREADABLE = blocking(
    "file-unreadable",
    "The operating system refuses to open or read the file.",
    "Check that the file exists and that you may read it.",
    "a definition that another user owns, with the permissions 600",
)
FILE_NOT_REGULAR = blocking(
    "file-not-regular",
    "There is a folder or a device where a file should be.",
    "Replace it with a file.",
    "a folder that is named gemm_n8_k4.json",
)
FILE_TOO_LARGE = blocking(
    "file-too-large",
    "The file is larger than any real one; it is not read.",
    "Move large data into blob/ and point to it.",
    "a definition of 200 MiB",
)
FILE_LFS_POINTER = blocking(
    "file-lfs-pointer",
    "The file is a Git LFS pointer, not the data itself.",
    "Fetch the data with `git lfs pull`.",
    "`version https://git-lfs.github.com/spec/v1` instead of JSON",
)
JSON_ENCODING = blocking(
    "json-encoding",
    "The file's bytes are not UTF-8.",
    "Save the file as UTF-8 without a byte order mark.",
    "a description saved as Latin-1",
)
JSON_BOM = blocking(
    "json-bom",
    "The file begins with a byte order mark, which many JSON readers refuse.",
    "Save the file as UTF-8 without a byte order mark.",
    "a file saved by an editor as UTF-8 with signature",
)
JSON_SYNTAX = blocking(
    "json-syntax",
    "The text is not JSON.",
    "Correct the text at that place.",
    '`{"name": "gemm_n8_k4",}`, a comma too many',
)
JSON_DEPTH = blocking(
    "json-depth",
    "The JSON is nested deeper than any real file.",
    "Flatten the value.",
    "`[[[[...]]]]`, 10,000 levels of it",
)
JSON_DUPLICATE_KEY = blocking(
    "json-duplicate-key",
    "An object has one key twice; readers disagree about which one counts.",
    "Keep one of them.",
    '`{"N": {...}, "N": {...}}` in axes',
)
JSON_NAN = blocking(
    "json-nan",
    "NaN and Infinity are not JSON.",
    "Use a finite number, or null where the format allows it.",
    '`{"type": "scalar", "value": NaN}`',
)
JSON_NUMBER = blocking(
    "json-number",
    "A number is too large to be represented.",
    "Use a number that fits 64 bits.",
    '`{"value": 1e999}`',
)
JSON_SURROGATE = blocking(
    "json-surrogate",
    "A string has half of a surrogate pair, which is not a character.",
    "Write the whole character.",
    '`"\\ud800"` without the other half',
)
JSONL_BLANK_LINE = warning(
    "jsonl-blank-line",
    "A JSON Lines file has an empty line between others.",
    "Remove the empty line.",
    "an empty line between two workloads",
)


MAX_BYTES = 16 * 1024 * 1024
"""Largest file that is read; real ones have a few hundred KiB at most."""

MAX_DEPTH = 64
"""Levels of arrays and objects; a definition needs 4, a trace about 6."""

_MAX_DIGITS = 40
_BOM = b"\xef\xbb\xbf"
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True)
class JsonFile:
    """Hold the value of one text; `ok` is False where there is none.

    `sha256` is the digest of the file's bytes, empty if they could not be read.
    """

    value: Any
    problems: tuple[Problem, ...] = ()
    ok: bool = True
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

    Raises nothing: errors are in `problems`.
    """
    data = _read_bytes(root / file, file, max_bytes)
    if isinstance(data, Problem):
        return JsonFile(None, (data,), ok=False)
    return replace(parse(data, file), sha256=hashlib.sha256(data).hexdigest())


def read_json_lines(root: Path, file: str, max_bytes: int = MAX_BYTES) -> JsonLines:
    """Read the JSON Lines file `file`, a path relative to `root`.

    A line that is wrong does not hide those after it.
    """
    data = _read_bytes(root / file, file, max_bytes)
    if isinstance(data, Problem):
        return JsonLines((), (data,))
    lines: list[tuple[int, Any]] = []
    problems: list[Problem] = []
    count = 0
    # Not splitlines(): JSON strings may hold U+2028 and the like as they are.
    texts = data.rstrip().split(b"\n") if data.strip() else ()
    for number, raw in enumerate(texts, start=1):
        if len(problems) > MAX_PROBLEMS:
            break
        if not raw.strip():
            message = f"Line {number} is empty."
            problems.append(JSONL_BLANK_LINE.problem(file, message, line=number))
            continue
        count += 1
        parsed = parse(raw, file, number)
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
            return FILE_NOT_REGULAR.problem(file, f"This is {kind}, not a file.")
        size, data = status.st_size, b""
        if size <= max_bytes:
            with opened(path) as descriptor:
                data = read_at_most(descriptor, max_bytes + 1)
            size = len(data)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"The file can't be read: {one_line(reason)}."
        return FILE_UNREADABLE.problem(file, message)
    if size > max_bytes:
        message = (
            f"The file has at least {size / 2**20:.1f} MiB, more than the "
            f"{max_bytes / 2**20:.0f} MiB that are read."
        )
        return FILE_TOO_LARGE.problem(file, message)
    if data.startswith(LFS_MAGIC):
        message = "The file is a Git LFS pointer: the data itself was not fetched."
        return FILE_LFS_POINTER.problem(file, message)
    return data


@dataclass(frozen=True)
class _BadNumber:
    """Stand for a number that JSON or Python can't hold until its place is known."""

    rule: Rule
    text: str


class _RepeatedKeys(dict[str, Any]):
    """Stand for an object with a key twice until its place is known."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def parse(data: bytes, file: str, line: int | None = None) -> JsonFile:
    """Return the value of a JSON text, and the Problems of the text.

    Duplicate keys keep the last value and a bad number becomes 0, so that the rest
    can be checked in the same pass. `line` is where the text stands in a JSON Lines
    file; without it a syntax error carries its own line.
    """
    bom: tuple[Problem, ...] = ()
    if data.startswith(_BOM) and line in (None, 1):
        data = data[len(_BOM) :]
        message = "The file begins with a byte order mark."
        bom = (JSON_BOM.problem(file, message, line=line),)
    odd: list[Any] = []
    try:
        text = data.decode("utf-8")
        value = _load(text, odd)
        # Brackets bound the depth from above, so most texts need no walk.
        brackets = text.count("[") + text.count("{")
        deep = _first_too_deep(value) if brackets > MAX_DEPTH else None
    except UnicodeDecodeError as error:
        start = error.start
        message = f"Byte {start} is 0x{data[start]:02x}, which is not UTF-8 here."
        place = data.count(b"\n", 0, start) + 1 if line is None else line
        wrong = JSON_ENCODING.problem(file, message, line=place)
        return JsonFile(None, (*bom, wrong), ok=False)
    except json.JSONDecodeError as error:
        place = error.lineno if line is None else line
        wrong = JSON_SYNTAX.problem(file, _syntax(text, error, line), line=place)
        return JsonFile(None, (*bom, wrong), ok=False)
    except (RecursionError, MemoryError):
        deep = ""
    if deep is not None:
        message = f"The JSON is nested more than {MAX_DEPTH} levels deep."
        wrong = JSON_DEPTH.problem(file, message, pointer=deep, line=line)
        return JsonFile(None, (*bom, wrong), ok=False)
    if not odd and not _ESCAPED_SURROGATE.search(text):
        return JsonFile(value, bom)
    found = (
        rule.problem(file, message, pointer=pointer(path), line=line)
        for rule, message, path in _oddities(value, ())
    )
    return JsonFile(_plain(value) if odd else value, bom + limited(found, file))


def _load(text: str, odd: list[Any]) -> Any:
    """Return the value of `text`; what stands for something odd is in `odd` as well."""

    def noted(stand_in: Any) -> Any:
        odd.append(stand_in)
        return stand_in

    def on_object(pairs: list[tuple[str, Any]]) -> Any:
        value = dict(pairs)
        return value if len(value) == len(pairs) else noted(_RepeatedKeys(pairs))

    def on_int(text: str) -> Any:
        # int() of thousands of digits is quadratic, and refused since Python 3.11.
        few = len(text) <= _MAX_DIGITS
        return int(text) if few else noted(_BadNumber(JSON_NUMBER, text))

    def on_float(text: str) -> Any:
        value = float(text)
        finite = math.isfinite(value)
        return value if finite else noted(_BadNumber(JSON_NUMBER, text))

    return json.loads(
        text,
        object_pairs_hook=on_object,
        parse_constant=lambda text: noted(_BadNumber(JSON_NAN, text)),
        parse_int=on_int,
        parse_float=on_float,
    )


def _syntax(text: str, error: json.JSONDecodeError, line: int | None) -> str:
    if not text.strip():
        return "The text is empty."
    if error.pos >= len(text.rstrip()):
        return "The text ends before the JSON value does."
    place = f"line {error.lineno}, column" if line is None else "column"
    return f"Not JSON at {place} {error.colno}: {one_line(error.msg)}."


def _children(value: Any) -> Iterable[tuple[str | int, Any]]:
    if isinstance(value, _RepeatedKeys):
        return value.pairs
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _first_too_deep(root: Any) -> str | None:
    """Return the pointer of the top-level field that is nested too deep, or None."""
    if not _is_deeper(root, MAX_DEPTH):
        return None
    fields = _children(root)
    return next(pointer([k]) for k, child in fields if _is_deeper(child, MAX_DEPTH - 1))


def _is_deeper(value: Any, levels: int) -> bool:
    """Return whether a value has more levels of arrays and objects; looks no deeper."""
    return isinstance(value, dict | list) and (
        levels == 0
        or any(_is_deeper(child, levels - 1) for _, child in _children(value))
    )


def _oddities(
    value: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[Rule, str, tuple[str | int, ...]]]:
    """Yield (rule, message, path) of what is odd below `path`, in the text's order."""
    if isinstance(value, _BadNumber):
        what = "is not JSON" if value.rule is JSON_NAN else "is too large"
        yield value.rule, f"The number {one_line(value.text, 30)} {what}.", path
    elif isinstance(value, str) and _has_surrogate(value):
        message = f"The string {quote(value)} has half of a surrogate pair."
        yield JSON_SURROGATE, message, path
    elif isinstance(value, _RepeatedKeys):
        for name, count in Counter(name for name, _ in value.pairs).items():
            if count > 1:
                times = plural(count, "time")
                message = f"The key {quote(name)} appears {times} in one object."
                yield JSON_DUPLICATE_KEY, message, (*path, name)
    for key, child in _children(value):
        if isinstance(key, str) and _has_surrogate(key):
            message = f"The key {quote(key)} has half of a surrogate pair."
            yield JSON_SURROGATE, message, path
        yield from _oddities(child, (*path, key))


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= c <= "\udfff" for c in text)


def _plain(value: Any) -> Any:
    """Return the value without stand-ins."""
    if isinstance(value, _BadNumber):
        return 0
    if isinstance(value, dict):
        return {key: _plain(child) for key, child in value.items()}
    return [_plain(child) for child in value] if isinstance(value, list) else value
