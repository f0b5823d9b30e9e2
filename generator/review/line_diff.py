"""Two texts of a reference side by side, line by line, as values for a template."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile

SAME, GONE, NEW, GAP = "same", "gone", "new", "gap"
MOST = 2000
"""Lines of both texts together; longer ones are not shown."""

_CHARACTERS = 320_000
_MATCHED = 1500
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
    return None if len(was) + len(now) > MOST else tuple(_walk(was, now))


def _lines(text: str) -> list[str]:
    lines = [line.expandtabs(4) for line in _NEWLINE.split(text)]
    return lines if lines[-1] else lines[:-1]


def _walk(was: Sequence[str], now: Sequence[str]) -> Iterator[DiffLine]:
    groups = SequenceMatcher(None, was, now).get_grouped_opcodes(3)
    if len(was) + len(now) > _MATCHED and was and now:
        # matching is quadratic, and a text that takes long can be made
        groups = iter([[("replace", 0, len(was), 0, len(now))]])
    shown = 0
    for group in (*groups, [("equal", len(was), len(was), 0, 0)]):
        if skipped := group[0][1] - shown:
            yield DiffLine(GAP, skipped, None, "")
        for tag, i, i_end, j, j_end in group:
            gone, come = was[i:i_end], now[j:j_end]
            if tag == "equal":
                for k, text in enumerate(gone, 1):
                    yield DiffLine(SAME, i + k, j + k, text)
                continue
            # a line without another to stand for has no middle
            paired = len(gone) == len(come)
            for k, text in enumerate(gone):
                parts = _parts(text, come[k] if paired else text)
                yield DiffLine(GONE, i + k + 1, None, *parts)
            for k, text in enumerate(come):
                parts = _parts(text, gone[k] if paired else text)
                yield DiffLine(NEW, None, j + k + 1, *parts)
        shown = group[-1][2]


def _parts(text: str, other: str) -> tuple[str, str, str]:
    """Return a line in three: the middle is what the other line has not."""
    start = _shared(text, other)
    cut = len(text) - _shared(text[start:][::-1], other[start:][::-1])
    return text[:start], text[start:cut], text[cut:]


def _shared(*texts: str) -> int:
    """Return how many characters two texts begin with."""
    pairs = zip(*texts, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
