"""The line of a JSON file on which a pointer's value stands."""

from __future__ import annotations

import json
import re

_SPACE = re.compile(r"[ \t\n\r]*")


def line_of(text: str, pointer: str) -> int | None:
    """Return the line, from 1, of a JSON pointer (RFC 6901); None where it leads nowhere.

    Of a member it is the line of its name. A text that is not JSON has no such line.
    """
    tokens = [t.replace("~1", "/").replace("~0", "~") for t in pointer.split("/")[1:]]
    try:
        at = _skip(text, 0)
        place = at
        for token in tokens:
            place, at = _inside(text, at, token)
    except (ValueError, IndexError, RecursionError, StopIteration):
        return None
    return text.count("\n", 0, place) + 1


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space is not None else at


def _inside(text: str, at: int, token: str) -> tuple[int, int]:
    """Return where a member's name or an item begins, and where its value does."""
    is_object = text[at] == "{"
    if not is_object and text[at] != "[":
        raise ValueError("neither an object nor an array")
    decoder, number = json.JSONDecoder(), 0
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        place, name = at, str(number)
        if is_object:
            name, at = decoder.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        if name == token:
            return place, at
        _, at = decoder.raw_decode(text, at)
        at = _skip(text, at)
        at = _skip(text, at + 1) if text[at] == "," else at
        number += 1
    raise ValueError("no such member")
