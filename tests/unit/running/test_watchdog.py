"""What a test's time is: that in which it runs, not that in which it waits for others."""

from __future__ import annotations

import time
from types import SimpleNamespace

from generator.running.watchdog import Watchdog


def test_waiting_for_memory_is_not_the_test_s_time():
    config = SimpleNamespace(getoption=lambda name, default=None: default)
    watchdog = Watchdog(config, {})
    try:
        long_ago = time.monotonic() - 1_000.0
        watchdog._watched = "a_test", 120.0, long_ago
        with watchdog.not_counting():
            assert watchdog._watched is None
        test, limit, end = watchdog._watched
        assert (test, limit) == ("a_test", 120.0)
        assert 100.0 < end - time.monotonic() <= 120.0
        watchdog._watched = None
        with watchdog.not_counting():
            pass
        assert watchdog._watched is None
    finally:
        watchdog.pytest_unconfigure()
