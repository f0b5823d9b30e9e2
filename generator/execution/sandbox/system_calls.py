"""A filter of system calls, built by libseccomp: what no reference needs is refused.

The filter lists what is denied. A list of what is allowed would be tighter and would
break with every release of torch, Python or the C library.
"""

from __future__ import annotations

import errno
import os
import signal
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
    shmget msgget semget mq_open memfd_secret timer_create
    uselib kexec_load kexec_file_load init_module finit_module delete_module reboot
    swapon swapoff acct quotactl iopl ioperm settimeofday clock_settime clock_adjtime
    adjtimex sethostname setdomainname syslog vhangup lookup_dcookie nfsservctl
"""
"""Other processes, the view of files, namespaces, keys, memory of nobody, the machine."""

_ABSENT = [
    *("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"),
    *("io_setup", "memfd_create"),
]
"""Answered with ENOSYS: programs then use an older call, which can be checked, or a file.

What the kernel does for a process while that is stopped would be work after the answer.
"""

_SIGNAL_AT = {
    **dict.fromkeys(("kill", "tkill", "rt_sigqueueinfo", "pidfd_send_signal"), 1),
    **dict.fromkeys(("tgkill", "rt_tgsigqueueinfo"), 2),
}
"""Where a call that sends a signal has it: none may continue what is stopped."""

_OF_FIRST = (
    *("prlimit64", "sched_setaffinity", "sched_setscheduler"),
    *("sched_setparam", "sched_setattr"),
)
"""What limits or slows the process of their first argument: never the first of all."""

_PRIORITIES = {"setpriority": os.PRIO_PROCESS, "ioprio_set": 1}
"""Calls on a process, a group or a user: what their first argument is for a process."""

_SHARED_ANONYMOUS = 0x21
"""Memory of no file: what of it is not mapped any more counts for nobody."""
_SET_SIGNAL = 10  # F_SETSIG
_NAMESPACES = 0x02000000, *(1 << bit for bit in (17, 26, 27, 28, 29, 30))
_INT = 0xFFFFFFFF
_KIND = 0xF
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: type into a terminal


def call_filter(*, devices: bool) -> bytes:
    """Return the filter as the kernel reads it, empty where there is none here."""
    return b"" if lacks_filter() is not None else filter_of_calls(devices=devices)


def lacks_filter() -> str | None:
    """Return why there is no filter here; None if there is one."""
    try:
        filter_of_calls(devices=False)
    except (ImportError, OSError, RuntimeError) as error:
        return one_line(f"{type(error).__name__}: {error}")
    return None


@lru_cache(maxsize=2)
def filter_of_calls(*, devices: bool) -> bytes:
    """Return the filter as the kernel reads it.

    All memory is that of a process or lies in a file system of known size: no files
    without a name and, without `devices`, no shared memory without a file, which CUDA
    needs.
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
    for name, at in _SIGNAL_AT.items():
        rules.append((name, [masked(at, _INT, signal.SIGCONT)]))
    # the kernel reads 32 bits of a process's number, whatever the others are
    rules += [(name, [masked(0, _INT, 1)]) for name in _OF_FIRST]
    # of one process, which is not the first; a group or a user has the first as well
    for name, of_one in _PRIORITIES.items():
        rules.append((name, [seccomp.Arg(0, seccomp.NE, of_one)]))
        rules.append((name, [masked(1, _INT, 1)]))
    rules.append(("fcntl", [masked(1, _INT, _SET_SIGNAL)]))
    if not devices:
        flags = masked(3, _SHARED_ANONYMOUS, _SHARED_ANONYMOUS)
        rules.append(("mmap", [flags]))
    filter = seccomp.SyscallFilter(seccomp.ALLOW)
    for name, arguments in rules:
        error = errno.ENOSYS if name in _ABSENT else errno.EPERM
        # unknown to this release of libseccomp, or to this architecture
        with suppress(OSError):
            filter.add_rule(seccomp.ERRNO(error), name, *arguments)
    with tempfile.TemporaryFile() as file:
        filter.export_bpf(file)
        return os.pread(file.fileno(), 1 << 20, 0)
