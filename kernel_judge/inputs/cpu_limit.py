"""Give a test up after some seconds of the CPU."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from kernel_judge.obstacle import Kind
from kernel_judge.skipping import skip

_IMPORT = "<frozen importlib._bootstrap>"


@contextmanager
def cpu_limit(
    seconds: float | None, over_it: Callable[[], None] | None = None
) -> Iterator[None]:
    """Skip the test that runs once its process has computed for so many CPU seconds.

    `over_it` is called before: a check may turn the skip into a value.
    For a test's own thread; a call into torch ends before the test does, and so does an
    import: half a module would stay for all tests behind it, and only the first test that
    needs it pays for it, so that the count begins again. None is no limit.
    """
    if seconds is None or not hasattr(signal, "setitimer"):
        yield
        return

    def over(number: int, frame: FrameType | None) -> None:
        if _imports(frame):
            signal.setitimer(signal.ITIMER_PROF, seconds)
            return
        if over_it is not None:
            over_it()
        reason = f"took over {seconds:g} s of the CPU: --workloads all asks for it"
        skip(Kind.TOO_LONG, reason)

    before = signal.signal(signal.SIGPROF, over)
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _imports(frame: FrameType | None) -> bool:
    """Return whether a frame is within the import of a module."""
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT:
            return True
        frame = frame.f_back
    return False
