"""A page of memory that judge and callee spin on: a call is handed over in a microsecond.

The judge opens a call, the callee prepares all that needs no values and says that it is
ready; the judge reveals the call, the callee makes it and answers. Each word holds the
number of the call, is written by one side alone, and only grows. What the callee writes
is a claim: an answer that comes too early has its outputs read too early.

The sandbox shows this file: it imports the standard library alone.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import time
from collections.abc import Callable
from typing import Any

SIZE = 1 << 16
END = 0
"""In place of a seed: no call follows."""
_TEXT, _MOST_TEXT = 1 << 12, 1 << 14
# a cache line for each side's words: what one writes does not stop the other
_OPENED, _SEED, _REVEALED, _WHICH = 0, 1, 2, 3
_READY, _ANSWERED, _LENGTH = 16, 17, 18
# spins between looks at the clock, and seconds between looks at the other side: /proc is slow to
# read, and nothing that is written meanwhile is seen
_SPINS, _LOOK_SECONDS = 2000, 0.02
_FEW_CORES = 4


class Silent(Exception):
    """Raised where the other side did not write in time, or has ended."""


class Page:
    """The shared page, mapped: the words of both sides, to read and to write.

    As the callee, wait no longer than `is_there` says that the judge is.
    """

    def __init__(self, file: int, is_there: Callable[[], bool] = lambda: True) -> None:
        self._judge_is_there = is_there
        self._shared = mmap.mmap(file, SIZE)
        self._words = memoryview(self._shared).cast("Q")
        # two that spin on one core would wait for each other
        self._yields = len(os.sched_getaffinity(0)) < _FEW_CORES
        self._said = b""

    @staticmethod
    def file() -> int:
        """Return a descriptor of a new page, which nobody can shorten.

        Whoever reads beyond the end of a file that was shortened is ended by a signal.
        """
        file = os.memfd_create("page", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(file, SIZE)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
        return file

    def open(self, number: int, seed: int) -> None:
        """Have the callee prepare a call, or with the seed END stop."""
        self._words[_SEED] = seed
        self._words[_OPENED] = number

    def wait_ready(
        self, number: int, until: float, is_there: Callable[[], bool]
    ) -> None:
        """Spin until a call is prepared. Raises Silent."""
        self._spin(_READY, number, until, is_there)

    def reveal(self, number: int, which: int) -> None:
        """Have the callee make a call; `which` says what is called, and how."""
        self._words[_WHICH] = which
        self._words[_REVEALED] = number

    def is_answered(self, number: int) -> bool:
        """Return whether a call is answered."""
        return self._words[_ANSWERED] == number

    def wait_answered(
        self, number: int, until: float, is_there: Callable[[], bool]
    ) -> None:
        """Spin until a call is answered. Raises Silent."""
        self._spin(_ANSWERED, number, until, is_there)

    def text(self) -> Any:
        """Return what the callee says of its answer: JSON, None where it is none."""
        length = min(self._words[_LENGTH], _MOST_TEXT)
        try:
            return json.loads(self._shared[_TEXT : _TEXT + length])
        except (ValueError, RecursionError):
            return None

    def opened(self, number: int) -> int:
        """As the callee, spin until a call is opened; return its seed. Raises Silent."""
        self._spin(_OPENED, number, None, self._judge_is_there)
        return self._words[_SEED]

    def ready(self, number: int) -> None:
        """As the callee, say that a call is prepared."""
        self._words[_READY] = number

    def revealed(self, number: int) -> int:
        """As the callee, spin until a call is revealed; return which. Raises Silent."""
        self._spin(_REVEALED, number, None, self._judge_is_there)
        return self._words[_WHICH]

    def answer(self, number: int, text: bytes) -> None:
        """As the callee, say that a call is done, and in JSON what there is to say."""
        if text != self._said:
            self._shared[_TEXT : _TEXT + len(text)] = text[:_MOST_TEXT]
            self._words[_LENGTH] = len(text)
            self._said = text
        self._words[_ANSWERED] = number

    def _spin(
        self,
        word: int,
        number: int,
        until: float | None,
        is_there: Callable[[], bool],
    ) -> None:
        words, yields = self._words, self._yields
        look = time.monotonic() + _LOOK_SECONDS
        while True:
            for _ in range(_SPINS):
                if words[word] == number:
                    return
                if yields:
                    os.sched_yield()
            now = time.monotonic()
            if until is not None and now > until:
                raise Silent("no answer in time")
            if now > look:
                look = now + _LOOK_SECONDS
                if not is_there():
                    raise Silent("the other process is gone")
