"""A seccomp filter, built by hand: what no reference needs is refused by the kernel.

The filter lists what is denied. A list of what is allowed would be tighter and would
break with every release of torch, Python or the C library.
"""

from __future__ import annotations

import ctypes
import errno
import struct

from generator.execution.sandbox import linux

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# name: (x86_64, aarch64); None where the architecture has no such call
DENIED: dict[str, tuple[int, int | None]] = {
    # the network. Pairs of sockets stay: multiprocessing talks through them
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    # the view of files
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    # new namespaces, where the user would be root again
    "setns": (308, 268),
    "unshare": (272, 97),
    # large, young parts of the kernel
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "personality": (135, 92),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    # the machine
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "iopl": (172, None),
    "ioperm": (173, None),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "lookup_dcookie": (212, 18),
    "nfsservctl": (180, 42),
}

# answered "not there": the C library then takes the old call, which can be judged
ABSENT = {
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}

_OF_SOCKETS = ("socket", "connect", "bind", "listen")
_LOCAL = 1  # AF_UNIX
_CLONE = (56, 220)
_IOCTL = (16, 29)
_SOCKETPAIR = (53, 199)
_KIND, _DATAGRAM, _RAW = 0xF, 2, 3  # of a pair these could be sent anywhere
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: type into a terminal
_NEW_NAMESPACES = (
    linux.CLONE_NEWNS
    | linux.CLONE_NEWUTS
    | linux.CLONE_NEWIPC
    | linux.CLONE_NEWUSER
    | linux.CLONE_NEWPID
    | linux.CLONE_NEWNET
    | 0x02000000  # of control groups
)

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_AND = 0x54
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_X32 = 0x40000000
_FILTER_MODE = 2


def supported() -> str | None:
    """Return why this kernel takes no filter; None if it does."""
    reason = linux.supported()
    if reason is not None:
        return reason
    try:
        linux.prctl(linux.PR_SET_SECCOMP, _FILTER_MODE, what="seccomp")
    except OSError as error:
        # it looked for the filter at address 0, so it knows what a filter is
        return None if error.errno == errno.EFAULT else str(error.strerror)
    return "the kernel took no filter for one"


def program(machine: str, *, local_sockets: bool = False) -> bytes:
    """Return the filter for an architecture, as the kernel's 8-byte instructions.

    With `local_sockets` those of this machine (AF_UNIX) can be made, and no others.
    """
    column = list(_ARCHITECTURES).index(machine)
    code = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_EQUAL, _ARCHITECTURES[machine], 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        code += _answer(_AT_LEAST, _X32, _ERROR | errno.ENOSYS)
    for calls, error in ((ABSENT, errno.ENOSYS), (DENIED, errno.EPERM)):
        for name, numbers in calls.items():
            if local_sockets and name in _OF_SOCKETS:
                continue
            if (number := numbers[column]) is not None:
                code += _answer(_EQUAL, number, _ERROR | error)
    refused = _ERROR | errno.EPERM
    if local_sockets:
        foreign = [_instruction(_EQUAL, _LOCAL, 1, 0), _instruction(_RETURN, refused)]
        code += _judge(DENIED["socket"][column] or 0, _FIRST_ARGUMENT, foreign)
    clone = _answer(_ANY_BIT, _NEW_NAMESPACES, refused)
    code += _judge(_CLONE[column], _FIRST_ARGUMENT, clone)
    ioctl = [i for call in _TERMINAL_INPUT for i in _answer(_EQUAL, call, refused)]
    code += _judge(_IOCTL[column], _SECOND_ARGUMENT, ioctl)
    pair = [_instruction(_AND, _KIND)]
    pair += [i for kind in (_DATAGRAM, _RAW) for i in _answer(_EQUAL, kind, refused)]
    code += _judge(_SOCKETPAIR[column], _SECOND_ARGUMENT, pair)
    code.append(_instruction(_RETURN, _ALLOW))
    return b"".join(code)


def install(*, local_sockets: bool = False) -> None:
    """Put the filter on this process and all it will start; raises OSError."""
    code = program(linux.machine(), local_sockets=local_sockets)
    text = ctypes.create_string_buffer(code)
    length = (len(text) - 1) // 8
    header = struct.pack("@HP", length, ctypes.addressof(text))
    linux.prctl(
        linux.PR_SET_SECCOMP,
        _FILTER_MODE,
        ctypes.create_string_buffer(header),
        what="seccomp",
    )


def _instruction(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _answer(test: int, value: int, result: int) -> list[bytes]:
    return [_instruction(test, value, 0, 1), _instruction(_RETURN, result)]


def _judge(number: int, argument: int, tests: list[bytes]) -> list[bytes]:
    """Return what judges one call by the low half of an argument, and allows it."""
    inner = [
        _instruction(_LOAD, argument),
        *tests,
        _instruction(_RETURN, _ALLOW),
    ]
    return [_instruction(_EQUAL, number, 0, len(inner)), *inner]
