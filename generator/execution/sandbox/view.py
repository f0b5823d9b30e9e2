"""The private file system: a new root that holds only what the command may see."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from generator.execution.sandbox import cuda, linux
from generator.execution.sandbox.plan import FILES, OF_DEV, PROCESSES, SandboxPlan

_PASSWD = "review:x:{uid}:{gid}:review:/tmp/home:/bin/false\n"
_GROUP = "review:x:{gid}:\n"


def enter(plan: SandboxPlan, uid: int, gid: int) -> str | None:
    """Make the new root the root of this process; returns what it had to leave out.

    Raises OSError. Afterwards no path leads to a file that is not in the view.
    """
    linux.mount("none", "/", "", linux.MS_REC | linux.MS_PRIVATE)
    root = f"{plan.scratch}/root"
    size = f"size={plan.limits.disk_bytes},nr_inodes=100k"
    linux.mount("none", root, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755")
    _devices(plan, root)
    _temporary(root + "/tmp", size, uid, gid)
    _temporary(root + "/dev/shm", size, uid, gid)
    without = _processes(plan, root)
    for path in _by_depth(plan.readable()):
        _show(path, root, writable=False)
    _show(plan.work, root, writable=True)
    _names(root, uid, gid)
    home = f"{root}{plan.home()}"
    os.mkdir(home, 0o700)
    os.chown(home, uid, gid)
    linux.pivot_root(root)
    flags = linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY
    linux.mount("none", "/", "", flags | linux.MS_NOSUID | linux.MS_NODEV)
    return without


def _by_depth(paths: Iterable[str]) -> list[str]:
    """Return paths so that a folder comes before what lies in it."""
    return sorted(dict.fromkeys(paths), key=lambda path: path.count("/"))


def _show(path: str, root: str, *, writable: bool) -> None:
    """Bind a path into the new root, or repeat it where it is a link."""
    target = root + path
    if os.path.islink(path) and path.count("/") == 1:  # /bin -> usr/bin
        if not os.path.lexists(target):
            os.symlink(os.readlink(path), target)
        return
    if not os.path.exists(path):
        return
    _place(path, target)
    _bind(os.path.realpath(path), target)
    access = 0 if writable else linux.MS_RDONLY
    _remount(target, access | linux.MS_NOSUID | linux.MS_NODEV)


def _place(path: str, target: str) -> None:
    """Make what a mount needs to lie on, unless another mount shows it already."""
    if os.path.exists(target):
        return
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "x"):
        pass


def _bind(source: str, target: str) -> None:
    try:
        linux.mount(source, target, "", linux.MS_BIND)
    except OSError as error:
        # in a user namespace, what is mounted below may not be uncovered
        if error.errno != errno.EINVAL:
            raise
        linux.mount(source, target, "", linux.MS_BIND | linux.MS_REC)


def _remount(target: str, flags: int) -> None:
    flags |= linux.MS_REMOUNT | linux.MS_BIND
    try:
        linux.mount("none", target, "", flags)
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
        # a user namespace may not drop what the outer mount forbids
        kept = os.statvfs(target).f_flag
        for name in ("ST_NOEXEC", "ST_NOATIME", "ST_NODIRATIME", "ST_RELATIME"):
            flags |= kept & getattr(os, name, 0)
        linux.mount("none", target, "", flags)


def _devices(plan: SandboxPlan, root: str) -> None:
    os.makedirs(f"{root}/dev/shm")
    for path in [f"/dev/{name}" for name in OF_DEV] + plan.devices:
        if os.path.isdir(path):
            for name in os.listdir(path):
                _device(f"{path}/{name}", root)
        else:
            _device(path, root)
    for name, number in (
        ("fd", ""),
        ("stdin", "/0"),
        ("stdout", "/1"),
        ("stderr", "/2"),
    ):
        os.symlink(f"/proc/self/fd{number}", f"{root}/dev/{name}")


def _device(path: str, root: str) -> None:
    if not stat.S_ISCHR(os.stat(path).st_mode):
        return
    _place(path, root + path)
    linux.mount(path, root + path, "", linux.MS_BIND)


def _temporary(target: str, size: str, uid: int, gid: int) -> None:
    os.makedirs(target, exist_ok=True)
    flags = linux.MS_NOSUID | linux.MS_NODEV
    linux.mount("none", target, "tmpfs", flags, f"mode=755,{size}")
    os.chown(target, uid, gid)


def _processes(plan: SandboxPlan, root: str) -> str | None:
    """Mount a /proc of the new namespace; returns why there is none."""
    target = f"{root}/proc"
    os.mkdir(target)
    if not plan.has(PROCESSES):
        return "/proc (it would show the processes of others)"
    # a container may show less of the driver than the machine does
    driver = root + cuda.DRIVER
    flags = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
    for options in ("hidepid=2", ""):
        try:
            linux.mount("proc", target, "proc", flags, options)
        except OSError as error:
            refused = str(error)
            continue
        if plan.devices and os.path.isdir(cuda.DRIVER) and os.path.isdir(driver):
            with suppress(OSError):
                linux.mount(cuda.DRIVER, driver, "", linux.MS_BIND | linux.MS_REC)
        return None
    return refused


def _names(root: str, uid: int, gid: int) -> None:
    """Write the one user there is, for programs that ask who they are."""
    os.makedirs(f"{root}/etc", exist_ok=True)
    for name, text in (("passwd", _PASSWD), ("group", _GROUP)):
        with open(f"{root}/etc/{name}", "x") as file:
            file.write(text.format(uid=uid, gid=gid))


def landlock_rules(
    plan: SandboxPlan, read: int, write: int, device: int
) -> list[tuple[str, int]]:
    """Return the paths that the command may use, with rights to each."""
    rules = [(path, read) for path in plan.readable()]
    rules += [(path, write) for path in (plan.work, plan.home(), plan.temporary())]
    rules += [("/dev/shm", write)] if plan.has(FILES) else []
    rules += [(f"/dev/{name}", device) for name in OF_DEV]
    rules += [(path, device | read) for path in plan.devices]
    if plan.has(PROCESSES) and plan.has(FILES):
        rules.append(("/proc", read | device))
    else:  # of the machine's processes only itself
        names = ["self", "cpuinfo", "meminfo", "stat", "filesystems", "sys/vm"]
        names += cuda.OF_PROC if plan.devices else []
        rules += [(f"/proc/{name}", read) for name in names]
    rules += (
        [(f"/etc/{name}", read) for name in ("passwd", "group")]
        if plan.has(FILES)
        else []
    )
    return rules
