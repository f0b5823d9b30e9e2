"""The settings of a process that Python's standard library has no function for."""

from __future__ import annotations

import ctypes
import os

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36


def prctl(option: int, value: int, *, what: str) -> None:
    """Call prctl(2); raises OSError that names `what`."""
    arguments = [ctypes.c_ulong(number) for number in (value, 0, 0, 0)]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(ctypes.c_int(option), *arguments) < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
