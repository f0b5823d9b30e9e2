"""Parse JSON text strictly: what other readers would take in silence is a Problem."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from generator.pointer import pointer
from generator.problems import Problem
from generator.rules.limit import limited
from generator.rules.table import finding
from generator.wording import one_line, plural, quote

MAX_DEPTH = 64
"""Levels of arrays and objects; a definition needs 4, a trace about 6."""

_MAX_DIGITS = 40
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True)
class Parsed:
    """Hold a parsed value; `ok` is False where the text gave no value at all."""

    value: Any
    problems: tuple[Problem, ...] = ()
    ok: bool = True


@dataclass(frozen=True)
class _BadNumber:
    """Stand for a number that JSON or Python can't hold until its place is known."""

    rule: str
    text: str


class _RepeatedKeys(dict[str, Any]):
    """Stand for an object with a key twice until its place is known."""

    pairs: list[tuple[str, Any]]


def parse(text: str, file: str, line: int | None = None) -> Parsed:
    """Return the value of `text` with everything that is wrong with it.

    Duplicate keys keep the last value and a bad number becomes 0, so that the rest
    can be checked in the same pass. `line` is where the text stands in a JSON Lines
    file; without it a syntax error carries its own line.
    """
    odd = False

    def on_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal odd
        value = dict(pairs)
        if len(value) == len(pairs):
            return value
        odd = True
        repeated = _RepeatedKeys(value)
        repeated.pairs = pairs
        return repeated

    def on_constant(text: str) -> Any:
        nonlocal odd
        odd = True
        return _BadNumber("json-nan", text)

    def on_int(text: str) -> Any:
        nonlocal odd
        # int() of thousands of digits is quadratic, and refused since Python 3.11.
        if len(text) <= _MAX_DIGITS:
            return int(text)
        odd = True
        return _BadNumber("json-number", text)

    def on_float(text: str) -> Any:
        nonlocal odd
        value = float(text)
        if math.isfinite(value):
            return value
        odd = True
        return _BadNumber("json-number", text)

    try:
        value = json.loads(
            text,
            object_pairs_hook=on_object,
            parse_constant=on_constant,
            parse_int=on_int,
            parse_float=on_float,
        )
    except json.JSONDecodeError as error:
        return _syntax_error(text, error, file, line)
    except (RecursionError, MemoryError):
        return Parsed(None, (_too_deep(file, "", line),), ok=False)
    # Brackets bound the depth from above, so most texts need no walk.
    if text.count("[") + text.count("{") > MAX_DEPTH:
        deep = _first_too_deep(value)
        if deep is not None:
            return Parsed(None, (_too_deep(file, deep, line),), ok=False)
    if not odd and not _ESCAPED_SURROGATE.search(text):
        return Parsed(value)
    problems = limited(_oddities(value, file, line), file)
    return Parsed(_plain(value) if odd else value, problems)


def _syntax_error(
    text: str, error: json.JSONDecodeError, file: str, line: int | None
) -> Parsed:
    if not text.strip():
        what = "The text is empty."
    elif error.pos >= len(text.rstrip()):
        what = "The text ends before the JSON value does."
    else:
        reason = one_line(error.msg)
        what = f"Not JSON at line {error.lineno}, column {error.colno}: {reason}."
        if line is not None:
            what = f"Not JSON at column {error.colno}: {reason}."
    place = error.lineno if line is None else line
    return Parsed(None, (finding("json-syntax", file, what, line=place),), ok=False)


def _too_deep(file: str, where: str, line: int | None) -> Problem:
    message = f"The JSON is nested more than {MAX_DEPTH} levels deep."
    return finding("json-depth", file, message, pointer=where, line=line)


def _children(value: Any) -> list[tuple[str | int, Any]]:
    if isinstance(value, _RepeatedKeys):
        return list(value.pairs)
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list):
        return list(enumerate(value))
    return []


def _first_too_deep(root: Any) -> str | None:
    """Return the pointer of the top-level field that is nested too deep, or None."""
    if not _is_deeper(root, MAX_DEPTH):
        return None
    fields = _children(root)
    return next(pointer([k]) for k, child in fields if _is_deeper(child, MAX_DEPTH - 1))


def _is_deeper(value: Any, levels: int) -> bool:
    """Return whether a value has more levels of arrays and objects, level by level."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        level = [
            child
            for parent in level
            for _, child in _children(parent)
            if isinstance(child, dict | list)
        ]
    return bool(level)


def _oddities(root: Any, file: str, line: int | None) -> Iterator[Problem]:
    """Yield what is odd below `root`, in the order of the text."""
    stack: list[tuple[Any, tuple[str | int, ...]]] = [(root, ())]
    while stack:
        value, path = stack.pop()
        where = pointer(path)
        if isinstance(value, _BadNumber):
            shown = one_line(value.text, 30)
            what = "is not JSON" if value.rule == "json-nan" else "is too large"
            message = f"The number {shown} {what}."
            yield finding(value.rule, file, message, pointer=where, line=line)
        elif isinstance(value, str) and _has_surrogate(value):
            message = f"The string {quote(value)} has half of a surrogate pair."
            yield finding("json-surrogate", file, message, pointer=where, line=line)
        elif isinstance(value, _RepeatedKeys):
            yield from _repeated(value, path, file, line)
        for key, child in reversed(_children(value)):
            if isinstance(key, str) and _has_surrogate(key):
                message = f"The key {quote(key)} has half of a surrogate pair."
                yield finding("json-surrogate", file, message, pointer=where, line=line)
            stack.append((child, (*path, key)))


def _repeated(
    value: _RepeatedKeys, path: tuple[str | int, ...], file: str, line: int | None
) -> Iterator[Problem]:
    counts: dict[str, int] = {}
    for key, _ in value.pairs:
        counts[key] = counts.get(key, 0) + 1
    for key, count in counts.items():
        if count > 1:
            yield finding(
                "json-duplicate-key",
                file,
                f"The key {quote(key)} appears {plural(count, 'time')} in one object.",
                pointer=pointer((*path, key)),
                line=line,
            )


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= c <= "\udfff" for c in text)


def _plain(value: Any) -> Any:
    """Return the value without stand-ins; recursion is bounded by MAX_DEPTH."""
    if isinstance(value, _BadNumber):
        return 0
    if isinstance(value, dict):
        return {key: _plain(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_plain(child) for child in value]
    return value
