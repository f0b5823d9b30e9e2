"""No test hangs a run: one that takes far too long is failed, with its stack.

A call that does not return can't be interrupted, so its process ends. Under xdist a fresh
worker goes on with the rest; without it the run is over.
"""

from __future__ import annotations

import faulthandler
import os
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

LEAST_SECONDS, TIMES_KNOWN = 120.0, 20.0
"""A test may take 20 times as long as it is known to, and two minutes in any case."""
_FOLDER = "reference_watchdog"
_STATUS = 70  # EX_SOFTWARE of sysexits.h


class Watchdog:
    """A thread that watches each test of a process and, at its limit, ends the process.

    `known` has the seconds that tests took in earlier runs, by node id.
    """

    def __init__(self, config: pytest.Config, known: Mapping[str, float]) -> None:
        self._config = config
        self._known = known
        self._asked: float | None = config.getoption("--test-timeout")
        self._worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        self._is_parent = bool(config.getoption("numprocesses", None))
        # of xdist's parent: where a worker leaves the stack of a test that it died of
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        # the test that runs, its limit and its end on the clock: replaced as a whole
        self._watched: tuple[str, float, float] | None = None
        self._thread: threading.Thread | None = None
        # capturing replaces the descriptor: what ends a run must be seen
        self._stderr = None if self._is_parent else os.dup(2)

    def limit(self, nodeid: str) -> float:
        """Return the seconds that a test may take."""
        if self._asked is not None:
            return self._asked
        return max(LEAST_SECONDS, TIMES_KNOWN * self._known.get(nodeid, 0.0))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give a worker a folder for the stack of a test that hangs."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="reference-watchdog-")
        node.workerinput[_FOLDER] = self._folder.name

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item
    ) -> Generator[None, object, object]:
        """Watch a test from its setup to its teardown."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._guard, daemon=True)
            self._thread.start()
        limit = self.limit(item.nodeid)
        self._watched = (item.nodeid, limit, time.monotonic() + limit)
        try:
            return (yield)
        finally:
            self._watched = None

    @contextmanager
    def not_counting(self) -> Iterator[None]:
        """Restart a test's time limit after it has waited for memory that others hold."""
        watched, self._watched = self._watched, None
        try:
            yield
        finally:
            if watched is not None:
                test, limit, _ = watched
                self._watched = test, limit, time.monotonic() + limit

    def _guard(self) -> None:
        """Look at the test that runs as often as one may end, and never be woken.

        To wake a thread twice a test took 6 % of a run of small cases on a busy machine.
        """
        least = self.limit("")
        while True:
            watched, left = self._watched, least
            if watched is not None:
                left = watched[2] - time.monotonic()
                if left <= 0:
                    self._end(*watched[:2])
            # a test that begins meanwhile has at least that long
            time.sleep(min(max(left, 0.0), least))

    def _end(self, test: str, limit: float) -> None:
        """Leave the stack of all threads where a person sees it, and end the process."""
        line = f"{test} took over {limit:g} s (--test-timeout): it is ended"
        folder = (self._worker or {}).get(_FOLDER)
        if folder is not None:
            with Path(folder, str(os.getpid())).open("w", encoding="utf-8") as file:
                file.write(f"{test}\n{line}\n")
                file.flush()
                faulthandler.dump_traceback(file, all_threads=True)
            os._exit(_STATUS)
        stream = 2 if self._stderr is None else self._stderr
        os.write(stream, b"\n")
        faulthandler.dump_traceback(stream, all_threads=True)
        more = (
            "" if self._worker else "; the tests after it were not run: -n 1 runs them"
        )
        os.write(stream, f"{line}{more}\n".encode())
        os._exit(_STATUS)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """Put the line and the stack into the report of a test that a worker died of."""
        for path in Path(self._folder.name).iterdir() if self._folder else ():
            test, _, text = path.read_text("utf-8", "replace").partition("\n")
            if test == crashitem:
                report.longrepr = text

    def pytest_unconfigure(self) -> None:
        """Remove the folder, and close what only a hanging test would need."""
        if self._stderr is not None:
            os.close(self._stderr)
            self._stderr = None
        if self._folder is not None:
            self._folder.cleanup()
