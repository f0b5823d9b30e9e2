"""Give a test up after some seconds of the CPU."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from kernel_judge.obstacle import Kind
from kernel_judge.skipping import skip


@contextmanager
def cpu_limit(seconds: float | None) -> Iterator[None]:
    """Skip the test that runs once its process has computed for so many CPU seconds.

    For a test's own thread; a call into torch ends before the test does. None is no limit.
    """
    if seconds is None or not hasattr(signal, "setitimer"):
        yield
        return

    def over(number: int, frame: FrameType | None) -> NoReturn:
        reason = f"took over {seconds:g} s of the CPU: --workloads all asks for it"
        skip(Kind.TOO_LONG, reason)

    before = signal.signal(signal.SIGPROF, over)
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
