"""Find a bubblewrap that works on this machine, or say what forbids it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from generator.execution.sandbox.bubblewrap import Bubblewrap, bubblewraps
from generator.execution.sandbox.supervise import Command, CommandOutcome, Limits, run
from generator.execution.sandbox.system_calls import lacks_filter
from generator.problems.messages import one_line

_INSTALL = "apt install bubblewrap, or pip install 'gen-tests[execute]'"
# setting, the value that forbids user namespaces, the one that allows them, whose it is
_SETTINGS = (
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0", "Ubuntu's AppArmor"),
    ("user.max_user_namespaces", "0", "10000", "the kernel"),
    ("kernel.unprivileged_userns_clone", "0", "1", "Debian's kernel"),
)
_CONTAINER = (
    "the container forbids it; docker run --security-opt seccomp=unconfined"
    " --security-opt apparmor=unconfined --security-opt systempaths=unconfined allows it"
)


def run_confined(
    command: Sequence[str],
    *,
    read_only: Sequence[Path],
    results: Path | None = None,
    limits: Limits | None = None,
    environment: Mapping[str, str] | None = None,
    devices: bool = False,
    hidden: Sequence[Path] = (),
    files: Mapping[str, bytes] | None = None,
    channel: int | None = None,
    stop: threading.Event | None = None,
    nests: bool = False,
    is_first: bool = False,
) -> CommandOutcome:
    """Run a command in bubblewrap; never raises for what it does.

    It sees the interpreter, the system's libraries and `read_only`, writes only to files
    in memory, and nothing of it is left afterwards but `results`: a file that is made
    here, and lies under its name in the folder where the command begins.
    `devices` lets it use CUDA. Folders that are `hidden` are empty for it, wherever they
    lie; `files` are path → content of files that exist nowhere else. It has the descriptor
    `channel`, and is ended when `stop` is set. A command that `nests` is ours: it may make
    namespaces, and no system call is refused; what it starts there is for it to confine.
    One that `is_first` can be neither stopped nor killed by what it starts, and reaps it.
    """
    bubblewrap = find_bubblewrap()
    if isinstance(bubblewrap, str):
        return CommandOutcome("not started", detail=bubblewrap)
    asked = Command(
        command,
        read_only,
        results,
        limits or Limits(),
        environment or {},
        devices,
        hidden,
        files or {},
        channel,
        nests,
        is_first,
    )
    try:
        return run(bubblewrap, asked, stop)
    except OSError as error:
        return CommandOutcome("not started", detail=str(error))


def refusal() -> str | None:
    """Return why nothing can be confined here, and what forbids it; None if it can."""
    bubblewrap = find_bubblewrap()
    return bubblewrap if isinstance(bubblewrap, str) else None


def warnings() -> tuple[str, ...]:
    """Return a line for each part of the sandbox that can be missing and is."""
    reason = lacks_filter()
    if reason is None:
        return ()
    gives = "it refuses sockets, tracing, mounts and rarely used system calls"
    return (f"no filter of system calls: {reason} ({gives}; {_INSTALL})",)


@lru_cache(maxsize=1)
def find_bubblewrap() -> Bubblewrap | str:
    """Return a bubblewrap that works here, else why none does."""
    if not sys.platform.startswith("linux"):
        return f"the sandbox needs Linux, this is {sys.platform}"
    reason = ""
    for bubblewrap in bubblewraps():
        command = [sys.executable, "-I", "-S", "-c", "pass"]
        tried = run(bubblewrap, Command(command, limits=Limits(wall_seconds=30)))
        if tried.ok:
            return bubblewrap
        reason = one_line(tried.detail or tried.limit or tried.stderr, 200)
    if not reason:
        return f"the sandbox needs bubblewrap, and there is no bwrap here: {_INSTALL}"
    return f"bubblewrap cannot confine here ({reason}): {_forbidden()}"


def _forbidden() -> str:
    """Return which setting keeps bubblewrap from working."""
    for name, value, allowing, owner in _SETTINGS:
        if _text(f"/proc/sys/{name.replace('.', '/')}").strip() == value:
            mend = f"sudo sysctl {name}={allowing}"
            return f"{owner} forbids user namespaces by {name} = {value}; {mend} allows them"
    if "\nSeccomp:\t2" in _text("/proc/self/status"):
        return _CONTAINER
    return "no setting that is known here forbids it"


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except OSError:
        return ""
