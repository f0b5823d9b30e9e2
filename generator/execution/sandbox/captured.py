"""Output of a hostile command: bounded, and inert on a terminal."""

from __future__ import annotations

import os
import unicodedata
from typing import IO

_INERT = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def captured(file: IO[bytes], keep: int) -> tuple[str, bool]:
    """Return the first and the last half of a file, and whether `keep` was too little.

    At most `keep` bytes are shown, as text that no terminal obeys.
    """
    size = os.fstat(file.fileno()).st_size
    if size <= keep:
        return _text(file, 0, size), False
    half = keep // 2
    dropped = f"\n[… {size - 2 * half} bytes not shown …]\n"
    return _text(file, 0, half) + dropped + _text(file, size - half, half), True


def inert(text: str) -> str:
    """Return text whose control, format and unassigned characters are escaped."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(map(_shown, text))


def _text(file: IO[bytes], start: int, size: int) -> str:
    return inert(os.pread(file.fileno(), size, start).decode(errors="replace"))


def _shown(char: str) -> str:
    if char in "\n\t" or unicodedata.category(char) not in _INERT:
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
