"""Read and write `verification/audit.json`: one line a definition, for readable diffs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from generator.dataset.json_file import MAX_BYTES, read_json
from generator.dataset.paths import AUDIT
from generator.problems.messages import one_line, quote, show
from generator.problems.pointer import pointer
from generator.results.audit_result import STATUSES, SURVIVED
from generator.results.audited import (
    LISTED,
    LONGEST_LINE,
    LONGEST_VERSION,
    Audited,
    Survivor,
    short,
)

FORMAT = 1
FIX = "Take the file from git, or delete it and run trace-dataset audit --all --record."
_MOST = 10**9
_SHA256 = re.compile(r"[0-9a-f]{64}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

Where = tuple[str | int, ...]
T = TypeVar("T")


class BrokenAudit(ValueError):
    """Say in one line what is wrong with an audit.json, and at which JSON pointer."""

    def __init__(self, where: Where | str, message: str) -> None:
        self.pointer = where if isinstance(where, str) else pointer(where)
        self.message = one_line(message, 500)
        place = one_line(f"{AUDIT}#{self.pointer}" if self.pointer else AUDIT)
        super().__init__(f"{place}: {self.message} {FIX}")


def read_audits(root: Path) -> dict[str, Audited] | None:
    """Return definition → result; None where the dataset has no audit.json.

    Raises BrokenAudit where it is something else, or leads out of the dataset.
    """
    path = root / AUDIT
    if not os.path.lexists(path):
        return None
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise BrokenAudit("", "This is a link that leads out of the dataset.")
    read = read_json(root, AUDIT)
    if not read.ok or read.problems:
        problem = read.problems[0]
        raise BrokenAudit(problem.pointer, problem.message)
    number = _field(read.value, (), "format", int, "a number")
    if number != FORMAT:
        raise BrokenAudit(("format",), f"The format is {number}, known is {FORMAT}.")
    definitions = _field(read.value, (), "definitions", dict, "an object")
    return {
        name: _audited(value, ("definitions", name))
        for name, value in definitions.items()
    }


def audits_in(root: Path) -> dict[str, Audited] | None:
    """Return a foreign dataset's audit; what can't be read is none."""
    try:
        return read_audits(root)
    except BrokenAudit:
        return None


def as_text(audits: Mapping[str, Audited]) -> str:
    """Return the text of an audit.json: the same results give the same text.

    Raises ValueError, one line, where it would be more than is read.
    """
    lines = (
        f"  {json.dumps(name)}: {json.dumps(found.as_dict())}"
        for name, found in sorted(audits.items())
    )
    body = ",\n".join(lines)
    text = f'{{"format": {FORMAT}, "definitions": {{\n{body}\n}}}}\n'
    if len(text) > MAX_BYTES:
        mib = MAX_BYTES >> 20
        raise ValueError(f"{AUDIT} would have more than the {mib} MiB that are read.")
    return text


def _audited(value: Any, where: Where) -> Audited:
    counts = _field(value, where, "counts", dict, "an object")
    numbers = {s: _count(counts, (*where, "counts"), s) for s in STATUSES}
    survivors = _field(value, where, "survivors", list, "an array")
    if len(survivors) > numbers[SURVIVED]:
        message = f"There are {len(survivors)}, but {numbers[SURVIVED]} survived."
        raise BrokenAudit((*where, "survivors"), message)
    reduced = _field(value, where, "reduced", dict, "an object")
    return Audited(
        _matching(value, where, "sha256", _SHA256, "64 hexadecimal digits"),
        numbers,
        tuple(
            _survivor(found, (*where, "survivors", place))
            for place, found in enumerate(survivors[:LISTED])
        ),
        {one_line(a, 60): _count(reduced, (*where, "reduced"), a) for a in reduced},
        _text(value, where, "gen_tests", LONGEST_VERSION),
        _text(value, where, "torch", LONGEST_VERSION),
        _matching(value, where, "date", _DATE, "a day such as 2026-11-21"),
    )


def _survivor(value: Any, where: Where) -> Survivor:
    return Survivor(*(_text(value, where, n) for n in ("name", "before", "after")))


def _field(value: Any, where: Where, name: str, kind: type[T], words: str) -> T:
    if not isinstance(value, dict):
        raise BrokenAudit(where, f"This must be an object, not {show(value)}.")
    if name not in value:
        raise BrokenAudit(where, f"There is no {quote(name)}.")
    found = value[name]
    if type(found) is not kind:  # a bool is an int, but no count
        message = f"This must be {words}, not {show(found)}."
        raise BrokenAudit((*where, name), message)
    return found


def _count(value: Any, where: Where, name: str) -> int:
    found = _field(value, where, name, int, "a whole number")
    if not 0 <= found <= _MOST:
        message = f"This must be from 0 to {_MOST}, not {show(found)}."
        raise BrokenAudit((*where, name), message)
    return found


def _text(value: Any, where: Where, name: str, longest: int = LONGEST_LINE) -> str:
    return short(_field(value, where, name, str, "a text"), longest)


def _matching(
    value: Any, where: Where, name: str, pattern: re.Pattern[str], words: str
) -> str:
    found = _field(value, where, name, str, words)
    if not pattern.fullmatch(found):
        message = f"This must be {words}, not {quote(found)}."
        raise BrokenAudit((*where, name), message)
    return found
