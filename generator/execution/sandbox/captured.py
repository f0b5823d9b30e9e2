"""Output of a hostile command: bounded, and inert on a terminal."""

from __future__ import annotations

import unicodedata
from typing import IO

_CHUNK = 1 << 16
_INERT = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


class CapturedOutput:
    """The first and the last half of what a stream says, at most `keep` bytes."""

    def __init__(self, keep: int) -> None:
        self.keep = keep
        self.total = 0
        self.dry = False
        self._head = b""
        self._tail = b""

    def take(self, pipe: IO[bytes]) -> bool:
        """Read what is there without waiting; returns False at the end."""
        self.dry = False
        data = pipe.raw.read(_CHUNK)  # type: ignore[attr-defined]
        if data is None:
            self.dry = True
            return True
        self.add(data)
        return bool(data)

    def add(self, data: bytes) -> None:
        """Keep what belongs to the first or the last half."""
        self.total += len(data)
        half = self.keep // 2
        room = half - len(self._head)
        self._head += data[:room]
        self._tail = (self._tail + data[room:])[-half:] if half else b""

    @property
    def truncated(self) -> bool:
        """Whether something between the two halves was dropped."""
        return self.total > len(self._head) + len(self._tail)

    def text(self) -> str:
        """Return it as text that no terminal obeys."""
        head, tail = (inert(part.decode(errors="replace")) for part in self._parts())
        if not self.truncated:
            return head + tail
        dropped = self.total - len(self._head) - len(self._tail)
        return f"{head}\n[… {dropped} bytes not shown …]\n{tail}"

    def _parts(self) -> tuple[bytes, bytes]:
        if self.truncated:
            return self._head, self._tail
        return self._head + self._tail, b""


def inert(text: str) -> str:
    """Return text whose control, format and unassigned characters are escaped."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(char: str) -> str:
    if char in "\n\t":
        return char
    if unicodedata.category(char) not in _INERT:
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
