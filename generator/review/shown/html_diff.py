"""Two texts of a reference side by side, line by line, as values for a template."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

SAME, GONE, NEW, GAP = "same", "gone", "new", "gap"
MOST = 2000
"""Lines of both texts together; longer ones are not shown."""

_CHARACTERS = 320_000
_MATCHED = 1500
_CONTEXT = 3
_NEWLINE = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class DiffLine:
    """Hold a line, its numbers in both texts from 1, and which part of it is another.

    The text is `before`, `middle` and `after`, of which `middle` is not in the line
    that it stands for; a gap has its number of lines in `old`.
    """

    kind: str
    old: int | None
    new: int | None
    before: str
    middle: str = ""
    after: str = ""


def line_diff(old: str, new: str) -> tuple[DiffLine, ...] | None:
    """Return the lines that differ, with some around; None where there are too many."""
    if len(old) + len(new) > _CHARACTERS:
        return None
    was, now = _lines(old), _lines(new)
    if len(was) + len(now) > MOST:
        return None
    return tuple(_cut(list(_walk(was, now))))


def _lines(text: str) -> list[str]:
    lines = [line.expandtabs(4) for line in _NEWLINE.split(text)]
    return lines[:-1] if lines and not lines[-1] else lines


def _walk(was: Sequence[str], now: Sequence[str]) -> Iterator[DiffLine]:
    for tag, i, i_end, j, j_end in _codes(was, now):
        if tag == "equal":
            for k in range(i_end - i):
                yield DiffLine(SAME, i + k + 1, j + k + 1, was[i + k])
            continue
        gone, come = was[i:i_end], now[j:j_end]
        paired = len(gone) == len(come)
        for k, text in enumerate(gone):
            parts = _parts(text, come[k]) if paired else (text, "", "")
            yield DiffLine(GONE, i + k + 1, None, *parts)
        for k, text in enumerate(come):
            parts = _parts(text, gone[k]) if paired else (text, "", "")
            yield DiffLine(NEW, None, j + k + 1, *parts)


def _codes(
    was: Sequence[str], now: Sequence[str]
) -> Sequence[tuple[str, int, int, int, int]]:
    if len(was) + len(now) > _MATCHED and was and now:
        # matching is quadratic, and a text that takes long can be made
        return [("replace", 0, len(was), 0, len(now))]
    return SequenceMatcher(None, was, now, autojunk=True).get_opcodes()


def _parts(text: str, other: str) -> tuple[str, str, str]:
    """Return a line in three: the middle is what the other line has not."""
    start = _shared(text, other)
    cut = len(text) - _shared(text[start:][::-1], other[start:][::-1])
    return text[:start], text[start:cut], text[cut:]


def _shared(text: str, other: str) -> int:
    """Return how many characters both begin with."""
    pairs = zip(text, other, strict=False)
    return next(
        (n for n, (a, b) in enumerate(pairs) if a != b), min(len(text), len(other))
    )


def _cut(lines: Sequence[DiffLine]) -> Iterator[DiffLine]:
    """Yield the lines near a difference; what lies between is counted."""
    near = {
        k
        for n, line in enumerate(lines)
        if line.kind != SAME
        for k in range(n - _CONTEXT, n + _CONTEXT + 1)
    }
    skipped = 0
    for n, line in enumerate(lines):
        if n not in near:
            skipped += 1
            continue
        if skipped:
            yield DiffLine(GAP, skipped, None, "")
            skipped = 0
        yield line
    if skipped:
        yield DiffLine(GAP, skipped, None, "")
