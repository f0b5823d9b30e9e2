"""A filter of system calls, built by libseccomp: what no reference needs is refused.

The filter lists what is denied. A list of what is allowed would be tighter and would
break with every release of torch, Python or the C library.
"""

from __future__ import annotations

import errno
import os
import socket
import tempfile
from contextlib import suppress
from functools import lru_cache
from typing import Any

from generator.problems.messages import one_line

_REFUSED = """
    ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd
    mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig fsmount fspick
    mount_setattr open_tree_attr name_to_handle_at open_by_handle_at fanotify_init
    setns unshare
    keyctl add_key request_key bpf perf_event_open userfaultfd personality modify_ldt
    uselib kexec_load kexec_file_load init_module finit_module delete_module reboot
    swapon swapoff acct quotactl iopl ioperm settimeofday clock_settime clock_adjtime
    adjtimex sethostname setdomainname syslog vhangup lookup_dcookie nfsservctl
"""
"""Other processes, the view of files, namespaces, keys, the machine."""

_ABSENT = ["clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"]
"""Answered with ENOSYS: the C library then uses an older call, which can be checked."""

_NAMESPACES = 0x02000000, *(1 << bit for bit in (17, 26, 27, 28, 29, 30))
_INT = 0xFFFFFFFF
_KIND = 0xF
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: type into a terminal


def lacks_filter() -> str | None:
    """Return why there is no filter here; None if there is one."""
    try:
        filter_of_calls()
    except (ImportError, OSError, RuntimeError) as error:
        return one_line(f"{type(error).__name__}: {error}")
    return None


@lru_cache(maxsize=1)
def filter_of_calls() -> bytes:
    """Return the filter as the kernel reads it.

    Unix sockets remain: CUDA opens one when it starts, and the namespaces keep those of
    other processes out of reach.
    Raises ImportError without pyseccomp, RuntimeError without libseccomp.
    """
    import pyseccomp as seccomp

    def masked(number: int, mask: int, value: int) -> Any:
        return seccomp.Arg(number, seccomp.MASKED_EQ, mask, value)

    rules: list[tuple[str, list[Any]]] = [(name, []) for name in _REFUSED.split()]
    rules += [(name, []) for name in _ABSENT]
    rules += [("clone", [masked(0, flag, flag)]) for flag in _NAMESPACES]
    rules += [("ioctl", [masked(1, _INT, call)]) for call in _TERMINAL_INPUT]
    rules += [("socket", [seccomp.Arg(0, seccomp.NE, socket.AF_UNIX)])]
    # pairs of sockets remain, except those that could send a datagram anywhere
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        rules.append(("socketpair", [masked(1, _KIND, kind)]))
    made = seccomp.SyscallFilter(seccomp.ALLOW)
    for name, arguments in rules:
        error = errno.ENOSYS if name in _ABSENT else errno.EPERM
        # unknown to this release of libseccomp, or to this architecture
        with suppress(OSError):
            made.add_rule(seccomp.ERRNO(error), name, *arguments)
    with tempfile.TemporaryFile() as file:
        made.export_bpf(file)
        return os.pread(file.fileno(), 1 << 20, 0)
