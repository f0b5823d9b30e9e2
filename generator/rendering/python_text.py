"""Write a dataset's text as Python source: whatever it holds, it stays text."""

from __future__ import annotations

import re
import textwrap
from functools import lru_cache
from unicodedata import ucd_3_2_0

WIDTH = 88
INDENT = "    "
_DIRECTIVE = re.compile(r"[#\s]*(fmt|yapf|ruff|isort)\s*:")


def comment(text: str, indent: str = "", width: int = WIDTH) -> str:
    """Return text as comment lines; unprintable characters are escaped."""
    lines = []
    for paragraph in text.splitlines():
        shown = "".join(map(_visible, paragraph)).strip()
        wrapped = textwrap.wrap(
            shown, width - len(indent) - 2, break_on_hyphens=False
        ) or [""]
        # a line that a formatter obeys, such as fmt: on, is one no more
        safe = (f"- {line}" if _DIRECTIVE.match(line) else line for line in wrapped)
        lines += [f"{indent}# {line}".rstrip() for line in safe]
    return "\n".join(lines)


# texts are long, and have few characters
@lru_cache(maxsize=1024)
def _visible(char: str) -> str:
    if char == "\t":
        return " "
    return _printed(char)


# names of axes come again and again
@lru_cache(maxsize=4096)
def literal(text: str) -> str:
    """Return a string literal with the quotes that a formatter chooses."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    quote = "'" if text.count('"') > text.count("'") else '"'
    escaped = "".join(_escape(char, quote) for char in text)
    return f"{quote}{escaped}{quote}"


def _escape(char: str, quote: str) -> str:
    return f"\\{char}" if char in (quote, "\\") else _printed(char)


def assignment(name: str, value: str) -> str:
    """Return `name = value` in a class body, wrapped as a formatter does."""
    line = f"{INDENT}{name} = {value}"
    first, second = f"{INDENT}{name} = (", f"{INDENT * 2}{value}"
    if len(line) <= WIDTH or max(len(first), len(second)) > WIDTH:
        return line
    return f"{first}\n{second}\n{INDENT})"


def call(name: str, function: str, argument: str) -> str:
    """Return `name = function(argument)` in a class body, wrapped as a formatter does."""
    line = f"{INDENT}{name} = {function}({argument})"
    if len(line) <= WIDTH:
        return line
    return f"{INDENT}{name} = {function}(\n{INDENT * 2}{argument}\n{INDENT})"


def class_line(name: str, bases: str) -> str:
    """Return the line `class name(bases):`, wrapped as a formatter does."""
    line = f"class {name}({bases}):"
    return line if len(line) <= WIDTH else f"class {name}(\n{INDENT}{bases}\n):"


def _printed(char: str) -> str:
    """Return a printable character, or its escape.

    By Unicode 3.2, which all versions of Python have: by their own databases, they
    would render different bytes for newer characters.
    """
    # the soft hyphen: a dash in Unicode 3.2, invisible since
    if char == " " or (char != "\xad" and ucd_3_2_0.category(char)[0] not in "CZ"):
        return char
    return char.encode("unicode_escape").decode()
