"""The seconds of a verdict, by what they went into."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class SecondsOf:
    """The seconds of each part: those of one that comes again are added up."""

    def __init__(self) -> None:
        self._parts: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """Add what was done since the last lap, or since the beginning, to a part."""
        now = time.perf_counter()
        self.add(name, now - self._last)
        self._last = now

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Add what is done inside to a part, also where it raises."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - begun)

    def add(self, name: str, seconds: float) -> None:
        """Add seconds to a part."""
        self._parts[name] = self._parts.get(name, 0.0) + seconds

    def as_dict(self) -> dict[str, float]:
        """Return the seconds of each part, to a millisecond, in the order of their beginning."""
        return {name: round(seconds, 3) for name, seconds in self._parts.items()}
