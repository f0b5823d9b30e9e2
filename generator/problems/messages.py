"""Format values from files for messages of one short line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

# difflib is quadratic; no real name is this long.
_LONGEST_COMPARED = 200


def one_line(text: str, limit: int = 300) -> str:
    """Return `text` clipped, with every character that is not printable escaped."""
    if len(text) > limit:
        text = text[: limit - 3] + "..."
    if not text.isprintable():
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return without_commands(text)


def without_commands(text: str) -> str:
    """Return text in which GitHub's runner sees no command.

    It runs `##[name]` anywhere in a line of a step's output, and `::name::` at its
    beginning (actions/runner, ActionCommand.TryParse): a space breaks the one, and the
    other wherever it could come to stand at the beginning.
    """
    if "##" in text:
        text = text.replace("##[", "## [")
    if "::" in text and text.lstrip().startswith("::"):
        text = text.replace("::", ": :", 1)
    return text


def quote(name: str, limit: int = 60) -> str:
    """Return `name` in quotation marks, clipped and escaped to one line."""
    if len(name) > limit:
        name = name[: limit - 3] + "..."
    return without_commands(repr(name))


def show(value: Any) -> str:
    """Return a short description of a JSON value: `'text'`, `an array of 3 items`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        return f"an object of {plural(len(value), 'field')}"
    if isinstance(value, list):
        return f"an array of {plural(len(value), 'item')}"
    return one_line(repr(value), 40)


def plural(count: int, noun: str) -> str:
    """Return `1 error`, `2 errors`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listing(names: Iterable[str]) -> str:
    """Return the names in brackets as a call would write them: `(q, k, v)`."""
    return one_line(f"({', '.join(names)})", 200)


def some(names: Sequence[str], most: int) -> str:
    """Return the first names, and how many there are beside them: `a, b and 3 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that `name` was most likely meant to be, or None."""
    if len(name) > _LONGEST_COMPARED:
        return None
    candidates = {k.casefold(): k for k in known}
    if name.casefold() in candidates:
        return candidates[name.casefold()]
    # Imported here: most datasets have no misspelt names.
    from difflib import get_close_matches

    close = get_close_matches(name.casefold(), candidates, n=1, cutoff=0.6)
    return candidates[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?` with a leading space, or an empty string."""
    guess = nearest(name, known)
    return f" Did you mean {quote(guess)}?" if guess is not None else ""
