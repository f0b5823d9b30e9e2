"""System calls of Linux that the standard library lacks, by ctypes."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from contextlib import suppress

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 63

# the same on every architecture: numbers were unified before these came
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446

_SYSCALLS = {
    "x86_64": {"pivot_root": 155, "capset": 126},
    "aarch64": {"pivot_root": 41, "capset": 91},
}


def machine() -> str:
    """Return the name of the architecture whose system calls this process makes."""
    return platform.machine() if sys.maxsize > 2**32 else "32 bit"


def is_linux() -> bool:
    """Return whether this is Linux."""
    return sys.platform.startswith("linux")


def supported() -> str | None:
    """Return why no layer of the kernel can be used here; None if they can."""
    if not is_linux():
        return f"the layers of Linux do not exist on {sys.platform}"
    if machine() not in _SYSCALLS:
        return f"the system calls of {machine()} are not known here"
    return None


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def syscall(number: int, *arguments: object, what: str) -> int:
    """Make a system call; raises OSError naming `what`."""
    call = _libc().syscall
    call.restype = ctypes.c_long
    passed = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return _checked(int(call(ctypes.c_long(number), *passed)), what)


def prctl(option: int, *values: object, what: str) -> int:
    """Call prctl(2) with missing arguments 0; raises OSError."""
    passed = [ctypes.c_ulong(v) if isinstance(v, int) else v for v in values]
    passed += [ctypes.c_ulong(0)] * (4 - len(passed))
    return _checked(int(_libc().prctl(ctypes.c_int(option), *passed)), what)


def unshare(flags: int) -> None:
    """Leave namespaces of the parent; raises OSError."""
    _checked(int(_libc().unshare(ctypes.c_int(flags))), "unshare")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Call mount(2); raises OSError naming the target."""
    result = _libc().mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode(),
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _checked(int(result), f"mount {kind or 'bind'} at {target}")


def unmount(target: str) -> None:
    """Detach the mount at a path; raises OSError."""
    _checked(int(_libc().umount2(os.fsencode(target), MNT_DETACH)), f"umount {target}")


def pivot_root(root: str) -> None:
    """Make a mounted folder the root and forget the old one; raises OSError."""
    os.chdir(root)
    number = _SYSCALLS[machine()]["pivot_root"]
    # onto itself: the old root lies over the new one until it is unmounted
    syscall(number, b".", b".", what="pivot_root")
    unmount(".")
    os.chdir("/")


def close_capabilities() -> None:
    """Give up the way to regain a capability by an exec; root alone can do it."""
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            prctl(PR_CAPBSET_DROP, capability, what="drop a capability")
        except OSError:  # unknown to this kernel, or not ours to drop
            continue


def drop_capabilities() -> None:
    """Give up every capability there is; raises OSError."""
    with suppress(OSError):  # before Linux 4.3 there are none
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, what="clear capabilities")
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION_3, 0))
    nothing = ctypes.create_string_buffer(24)
    syscall(_SYSCALLS[machine()]["capset"], header, nothing, what="capset")
