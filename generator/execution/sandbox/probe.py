"""Try each layer in a process of its own; runs as a child, prints JSON."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable

from generator.execution.sandbox import landlock, linux, seccomp
from generator.execution.sandbox.launch import leave
from generator.execution.sandbox.plan import (
    FILES,
    IPC,
    LANDLOCK_FILES,
    LANDLOCK_NETWORK,
    LANDLOCK_SCOPES,
    NAMES,
    NETWORK,
    PROCESSES,
    RESOURCES,
    SECCOMP,
    USER,
)

_STRANGER = 1_879_048_192


def main() -> None:
    """Print, for each layer, what is missing; null where it works."""
    print(json.dumps({name: _in_child(_TRIALS[name]) for name in NAMES}))


def _in_child(trial: Callable[[], None]) -> str | None:
    """Return what a trial said when it failed; None if it went through."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            trial()
            said = ""
        except BaseException as error:  # noqa: BLE001 - the answer
            said = f"{error}" or type(error).__name__
        os.write(write, said.encode()[:1000])
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(child, 0)
    return answer or None


def _known() -> None:
    reason = linux.supported()
    if reason is not None:
        raise OSError(reason)


def _leaves(layer: str) -> Callable[[], None]:
    def trial() -> None:
        _known()
        leave([layer])

    return trial


def _view() -> None:
    _known()
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()  # the mount goes with the namespace that it leaves for
        if child == 0:
            os._exit(_mounts(folder))
        _, status = os.waitpid(child, 0)
    if status:
        error = os.waitstatus_to_exitcode(status)
        raise OSError(error, f"unshare or mount: {os.strerror(error)}")


def _mounts(folder: str) -> int:
    try:
        leave([FILES])
        linux.mount("none", "/", "", linux.MS_REC | linux.MS_PRIVATE)
        linux.mount("none", folder, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV)
    except OSError as error:
        return error.errno or 1
    return 0


def _processes() -> None:
    _known()
    leave([PROCESSES])
    child = os.fork()
    if child == 0:
        os._exit(0 if os.getpid() == 1 else 1)
    if os.waitpid(child, 0)[1]:
        raise OSError("the first process of the namespace is not its first")


def _user() -> None:
    _known()
    if os.geteuid() != 0:
        return  # an ordinary user is what is wanted
    _view()  # a stranger cannot reach folders that only root may enter
    os.setgroups([])
    os.setresgid(_STRANGER, _STRANGER, _STRANGER)
    os.setresuid(_STRANGER, _STRANGER, _STRANGER)


def _landlock(since: int) -> Callable[[], None]:
    def trial() -> None:
        version = landlock.version()
        if version < since:
            raise OSError(f"Landlock {version} of the kernel, needs {since}")

    return trial


def _seccomp() -> None:
    reason = seccomp.supported()
    if reason is not None:
        raise OSError(reason)
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1, what="no new privileges")
    seccomp.install()


def _resources() -> None:
    import resource

    assert resource


_TRIALS: dict[str, Callable[[], None]] = {
    NETWORK: _leaves(NETWORK),
    FILES: _view,
    PROCESSES: _processes,
    IPC: _leaves(IPC),
    USER: _user,
    LANDLOCK_FILES: _landlock(1),
    LANDLOCK_NETWORK: _landlock(4),
    LANDLOCK_SCOPES: _landlock(6),
    SECCOMP: _seccomp,
    RESOURCES: _resources,
}

if __name__ == "__main__":
    main()
