"""The launcher: leaves namespaces, builds the view, starts the command and reaps.

Three processes. The *outer* one leaves the caller's namespaces. The *inner* one is
process 1 of the new namespace: it adopts what the command leaves behind, and when it
ends the kernel kills whatever is left. The *command* drops every privilege and starts.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from generator.execution.sandbox import cuda, landlock, linux, seccomp, view
from generator.execution.sandbox.plan import (
    FILES,
    IPC,
    LANDLOCK_FILES,
    LANDLOCK_NETWORK,
    LANDLOCK_SCOPES,
    NETWORK,
    PROCESSES,
    RESERVED,
    RESOURCES,
    SECCOMP,
    USER,
    SandboxPlan,
)
from generator.execution.sandbox.tree import bury, descendants

_INNER_ID = 1000
_STRANGERS = 1_879_048_192
"""From here on numbers of users that no machine gives to anybody."""

_FLAGS = {
    NETWORK: linux.CLONE_NEWNET,
    FILES: linux.CLONE_NEWNS | linux.CLONE_NEWUTS,
    PROCESSES: linux.CLONE_NEWPID,
    IPC: linux.CLONE_NEWIPC,
}


def main() -> None:
    """Run the plan that the first argument says; exits 0, the report says the rest."""
    plan = SandboxPlan.from_json(sys.argv[1])
    _die_with(plan.parent)
    linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1, what="adopt orphans")
    try:
        uid, gid = leave(plan.active)
    except OSError as error:
        _report(plan.report, {"not_started": str(error)})
        return
    linux.prctl(linux.PR_SET_DUMPABLE, 0, what="hide memory")
    outer = os.getpid()
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    inner = os.fork()
    if inner == 0:
        _guarded(plan.report, lambda: _inner(plan, outer, proc, uid, gid))
    os.close(plan.report)
    os.waitpid(inner, 0)
    _kill_all(os.getpid(), proc)


def leave(active: list[str]) -> tuple[int, int]:
    """Leave the caller's namespaces; returns the user and group of the command."""
    flags = 0
    for layer in active:
        flags |= _FLAGS.get(layer, 0)
    if os.geteuid() == 0:
        linux.unshare(flags)
        if USER not in active:
            return os.getuid(), os.getgid()
        # one per run: limits count per user
        stranger = _STRANGERS + os.getpid() % (1 << 22)
        return stranger, stranger
    uid, gid = os.getuid(), os.getgid()
    if not flags:
        return uid, gid
    linux.unshare(flags | linux.CLONE_NEWUSER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{_INNER_ID} {uid} 1"),
        ("gid_map", f"{_INNER_ID} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    return _INNER_ID, _INNER_ID


def _guarded(report: int, work: Callable[[], object]) -> NoReturn:
    """Do the work of a forked process, tell what went wrong, and end it."""
    try:
        work()
    except BaseException as error:  # noqa: BLE001 - told to the supervisor
        with contextlib.suppress(OSError):
            _report(report, {"not_started": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(0)


def _inner(plan: SandboxPlan, outer: int, proc: int, uid: int, gid: int) -> None:
    _die_with(0 if plan.has(PROCESSES) else outer)
    linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1, what="adopt orphans")
    if os.geteuid() == 0 and uid != 0:
        _hand_over(plan.work, uid, gid)
    without = view.enter(plan, uid, gid) if plan.has(FILES) else None
    failed, failing = os.pipe()
    own = os.getpid()
    command = os.fork()
    if command == 0:
        os.close(plan.report)
        os.close(failed)
        _guarded(failing, lambda: _command(plan, own, uid, gid))
    os.close(failing)
    # their ends: nobody reads what this process says
    for stream in (0, 1, 2):
        os.close(stream)
    with open(failed, "rb") as pipe:  # closed by a start that worked
        trouble = pipe.read()
    status, usage = _reap_until(command)
    _kill_all(own, None if plan.has(PROCESSES) else proc)
    said: dict[str, Any] = json.loads(trouble) if trouble else {"status": status}
    _report(plan.report, {**said, "cpu": usage, "without": without})


def _command(plan: SandboxPlan, parent: int, uid: int, gid: int) -> None:
    os.setsid()
    if plan.has(RESOURCES):
        _limit(plan)
    linux.close_capabilities()
    if os.geteuid() == 0 and uid != 0:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    _die_with(parent)
    os.umask(0o022)
    os.chdir(plan.work)
    for path in (*plan.read_only, *plan.command[:1]):
        needed = os.R_OK | (os.X_OK if os.path.isdir(path) else 0)
        if not os.access(path, needed):
            raise PermissionError(f"{path}: not there, or not readable by others")
    closed = cuda.closed(plan.devices)
    if closed is not None:
        raise PermissionError(closed)
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1, what="no new privileges")
    linux.drop_capabilities()
    if plan.has(LANDLOCK_FILES):
        abi = landlock.version()
        rights = (landlock.READ, landlock.writable(abi), landlock.DEVICE)
        landlock.restrict(
            view.landlock_rules(plan, *rights),
            files=True,
            network=plan.has(LANDLOCK_NETWORK),
            scopes=plan.has(LANDLOCK_SCOPES),
        )
    if plan.has(SECCOMP):
        # CUDA opens a local socket when it starts
        seccomp.install(local_sockets=bool(plan.devices) and plan.is_closed)
    environment = {
        "HOME": plan.home(),
        "TMPDIR": plan.temporary(),
        **plan.environment,
    }
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(number, signal.SIG_DFL)
    os.execve(plan.command[0], plan.command, environment)


def _limit(plan: SandboxPlan) -> None:
    limits = plan.limits
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: limits.cpu_seconds,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_FSIZE: limits.file_bytes,
    }
    if not plan.devices:  # CUDA reserves addresses by the terabyte
        wanted[resource.RLIMIT_AS] = limits.memory_bytes + RESERVED
    # Of the caller's own user they would count what runs outside as well.
    if plan.has(USER):
        wanted[resource.RLIMIT_NPROC] = limits.processes
    for which, value in wanted.items():
        _, most = resource.getrlimit(which)
        allowed = value if most == resource.RLIM_INFINITY else min(value, most)
        # a second later the kernel kills what ignores the signal for CPU time
        later = allowed + (which == resource.RLIMIT_CPU and allowed < most % 2**63)
        resource.setrlimit(which, (allowed, later))


def _reap_until(command: int) -> tuple[int, float]:
    """Wait for the command, adopting and burying others; returns status, CPU time."""
    while True:
        process, status, usage = os.wait4(-1, 0)
        if process == command:
            return status, usage.ru_utime + usage.ru_stime


def _kill_all(own: int, proc: int | None) -> None:
    """Kill and bury what descends from this process, found in an open /proc.

    Without one this is the first process of a namespace: it kills all it can see.
    """
    bury((lambda: [-1]) if proc is None else (lambda: descendants(own, proc)), 10)


def _hand_over(work: str, uid: int, gid: int) -> None:
    for folder, folders, files in os.walk(work):
        os.lchown(folder, uid, gid)
        for name in folders + files:
            os.lchown(os.path.join(folder, name), uid, gid)


def _die_with(parent: int) -> None:
    """Be killed when the parent ends; ends now if it has already."""
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL, what="die with the parent")
    if os.getppid() != parent:
        os._exit(1)


def _report(pipe: int, what: dict[str, Any]) -> None:
    os.write(pipe, json.dumps(what).encode()[:60_000])
