"""Text from a dataset as Python text: it can say anything and stays only text."""

from __future__ import annotations

import textwrap

WIDTH = 88


def comment(text: str, indent: str = "", width: int = WIDTH) -> str:
    """Return any text as comment lines; characters that don't print are escaped."""
    lines = []
    for paragraph in text.splitlines():
        shown = "".join(_visible(char) for char in paragraph).strip()
        wrapped = textwrap.wrap(
            shown, width - len(indent) - 2, break_on_hyphens=False
        ) or [""]
        lines += [f"{indent}# {line}".rstrip() for line in wrapped]
    return "\n".join(lines)


def _visible(char: str) -> str:
    if char == "\t":
        return " "
    return char if char.isprintable() else char.encode("unicode_escape").decode()


def literal(text: str) -> str:
    """Return a string literal with the quotes that a formatter would choose."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    escaped = "".join(_escape(char, quote) for char in text)
    return f"{quote}{escaped}{quote}"


def _escape(char: str, quote: str) -> str:
    if char in (quote, "\\"):
        return f"\\{char}"
    return char if char.isprintable() else char.encode("unicode_escape").decode()
