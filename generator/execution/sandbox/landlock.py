"""Landlock: which paths a process and its children can read or write, for good."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from generator.execution.sandbox import linux

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE

# rights that each version of the interface knows
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_TCP = 0b11  # bind and connect
_SCOPES = 0b11  # abstract sockets, signals
_NETWORK_SINCE, _SCOPES_SINCE = 4, 6

READ = _EXECUTE | _READ_FILE | _READ_DIR
"""Read and run what lies beneath a path."""

DEVICE = _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEVICE
"""Use a device file, or one of /proc: CUDA opens its own there as if to empty it."""


def version() -> int:
    """Return the version of the kernel's Landlock; raises OSError without one."""
    reason = linux.supported()
    if reason is not None:
        raise OSError(0, reason)
    return linux.syscall(
        linux.LANDLOCK_CREATE_RULESET, None, 0, 1, what="landlock_create_ruleset"
    )


def everything(abi: int) -> int:
    """Return the rights to files that a version of Landlock can take away."""
    return next(rights for since, rights in reversed(_RIGHTS.items()) if abi >= since)


def writable(abi: int) -> int:
    """Return the rights to do anything beneath a path but make devices."""
    return everything(abi) & ~(_MAKE_CHAR | _MAKE_BLOCK)


def restrict(
    allowed: Iterable[tuple[str, int]], *, files: bool, network: bool, scopes: bool
) -> None:
    """Take from this process what is not allowed; raises OSError.

    `allowed` are paths with rights; those that do not exist are passed over.
    """
    abi = version()
    rights = everything(abi) if files else 0
    attributes = struct.pack("=Q", rights)
    if abi >= _NETWORK_SINCE:
        attributes += struct.pack("=Q", _TCP if network else 0)
    if abi >= _SCOPES_SINCE:
        attributes += struct.pack("=Q", _SCOPES if scopes else 0)
    rules = linux.syscall(
        linux.LANDLOCK_CREATE_RULESET,
        ctypes.create_string_buffer(attributes),
        len(attributes),
        0,
        what="landlock_create_ruleset",
    )
    try:
        for path, wanted in allowed if files else ():
            _allow(rules, path, wanted & rights)
        linux.syscall(
            linux.LANDLOCK_RESTRICT_SELF, rules, 0, what="landlock_restrict_self"
        )
    finally:
        os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _OF_FILES
        beneath = ctypes.create_string_buffer(struct.pack("=Qi", rights, place))
        linux.syscall(
            linux.LANDLOCK_ADD_RULE, rules, 1, beneath, 0, what=f"landlock {path}"
        )
    finally:
        os.close(place)
