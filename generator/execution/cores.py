"""The cores that this process may use."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return how many cores the system lets this process use: at least one.

    Linux may leave it fewer than the machine has; elsewhere all count.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
