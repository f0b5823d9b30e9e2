"""What all tests need, wherever they are run from."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Take interrupts again where they are ignored, as behind `&` and in some runners.

    Tests interrupt commands, which inherit what the tests do with the signal.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # the tests go on behind nohup; what they start has no handler, and takes a hang-up
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
