"""Inside the sandbox: namespaces, files and rights of one solution's processes.

The first process of the sandbox has the rights to make namespaces, and runs no code of a
solution. Whatever a solution can reach is made for it alone and goes with its processes:
nothing is emptied, nothing is left for the next.
"""

from __future__ import annotations

import ctypes
import os
import random
import sys
from collections.abc import Mapping
from typing import Any

_FOLDERS = ("/tmp/home", "/tmp/work")
HOME, WORK = _FOLDERS
_NEW_NS, _NEW_UTS, _NEW_IPC = 0x00020000, 0x04000000, 0x08000000
_NEW_PID, _NEW_NET = 0x20000000, 0x40000000
_NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_DUMPABLE, _SECCOMP, _NO_NEW_PRIVS, _AMBIENT = 4, 22, 38, 47
_FILTER, _CLEAR_ALL = 2, 4
_CAPABILITIES = 0x20080522
_STRANGERS = 1_879_048_192
"""From here on, no machine assigns these user numbers."""

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    """A filter of system calls, as prctl(2) reads it."""

    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def begin_processes() -> None:
    """Let the next fork of this process be the first one of its own PID namespace."""
    namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        # from the last one: a namespace is made below the process's own alone
        _done(_libc.setns(namespace, _NEW_PID), "setns")
    finally:
        os.close(namespace)
    _done(_libc.unshare(_NEW_PID), "unshare")


def enter(how: Mapping[str, Any]) -> None:
    """Leave all that other solutions had: IPC, network, files that can be written.

    One tmpfs of `how["bytes"]` is all that can be written to; shared memory lies in it.
    Afterwards the process has no rights, and as root before, a user of its own.
    """
    _done(_libc.unshare(_NEW_NS | _NEW_UTS | _NEW_IPC | _NEW_NET), "unshare")
    _mount("none", "/", None, _REC | _PRIVATE)
    _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    size = f"size={how['bytes']},nr_inodes={how['entries']},mode=1777"
    libraries = _below("/tmp")
    _mount("tmpfs", "/tmp", "tmpfs", _NOSUID | _NODEV, size)
    for path, opened in libraries.items():
        # an environment that lies in /tmp is still there, and can't be written to
        os.makedirs(path)
        _mount(f"/proc/self/fd/{opened}", path, None, _BIND | _REC)
        os.close(opened)
    os.mkdir("/tmp/shm")
    os.chmod("/tmp/shm", 0o1777)
    _mount("/tmp/shm", "/dev/shm", None, _BIND)
    if os.geteuid() == 0:
        user = _STRANGERS + random.SystemRandom().randrange(1 << 22)
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    _prctl(_AMBIENT, _CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0)
    _done(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")
    for folder in _FOLDERS:
        os.mkdir(folder, 0o700)
    os.chdir(WORK)


def _below(folder: str) -> dict[str, int]:
    """Return path → descriptor of the folders of libraries that lie below a folder."""
    opened: dict[str, int] = {}
    for path in sorted({os.path.realpath(p) for p in (sys.prefix, *sys.path)}):
        inside = any(path.startswith(f"{known}/") for known in opened)
        if path.startswith(f"{folder}/") and not inside and os.path.isdir(path):
            opened[path] = os.open(path, os.O_PATH | os.O_CLOEXEC)
    return opened


def filter_calls(program: bytes) -> None:
    """Refuse system calls from now on, also to what this process starts."""
    _prctl(_NO_NEW_PRIVS, 1)
    if program:
        text = ctypes.create_string_buffer(program, len(program))
        address = ctypes.cast(text, ctypes.c_void_p)
        whole = _Program(len(program) // 8, address)
        _prctl(_SECCOMP, _FILTER, ctypes.addressof(whole))


def hide(*, hidden: bool) -> None:
    """Keep others of the same user from this process's memory, or take that back."""
    _prctl(_DUMPABLE, int(not hidden))


def _mount(
    source: str, target: str, kind: str | None, flags: int, data: str | None = None
) -> None:
    texts = [None if t is None else t.encode() for t in (source, target, kind)]
    options = None if data is None else data.encode()
    _done(_libc.mount(*texts, ctypes.c_ulong(flags), options), f"mount {target}")


def _prctl(option: int, *arguments: int) -> None:
    values = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0)[:4]]
    _done(_libc.prctl(option, *values), f"prctl {option}")


def _done(status: int, what: str) -> None:
    """Raise OSError where a call of the C library failed."""
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
