"""Two texts of a reference side by side, line by line, as values for a template."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

SAME, GONE, NEW, GAP = "same", "gone", "new", "gap"
MOST = 1500
"""Lines of both texts together; matching is quadratic, and longer ones are not shown."""

_CHARACTERS = 320_000
_NEWLINE = re.compile(r"\r\n|\r|\n")


class DiffLine(NamedTuple):
    """A line with its numbers in both texts, from 1; a gap stands for lines unshown."""

    kind: str
    old: int | None
    new: int | None
    text: str


def line_diff(old: str, new: str) -> tuple[DiffLine, ...] | None:
    """Return the lines that differ, with some around; None where there are too many."""
    was, now = _lines(old), _lines(new)
    if len(old) + len(new) > _CHARACTERS or len(was) + len(now) > MOST:
        return None
    return tuple(_walk(was, now))


def _lines(text: str) -> list[str]:
    lines = [line.expandtabs(4) for line in _NEWLINE.split(text)]
    return lines if lines[-1] else lines[:-1]


def _walk(was: Sequence[str], now: Sequence[str]) -> Iterator[DiffLine]:
    shown = 0
    for group in SequenceMatcher(None, was, now).get_grouped_opcodes(3):
        if group[0][1] > shown:
            yield DiffLine(GAP, None, None, "")
        for tag, i, shown, j, j_end in group:
            if tag == "equal":
                same = enumerate(was[i:shown], 1)
                yield from (DiffLine(SAME, i + n, j + n, text) for n, text in same)
                continue
            gone, come = enumerate(was[i:shown], i + 1), enumerate(now[j:j_end], j + 1)
            yield from (DiffLine(GONE, n, None, text) for n, text in gone)
            yield from (DiffLine(NEW, None, n, text) for n, text in come)
