"""The child's side of a test's task: it sleeps, and says which pipes it has."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from collections.abc import Mapping
from typing import Any

from generator.execution.child import Link


def answer(task: Mapping[str, Any], link: Link) -> None:
    """Sleep for so many seconds; send the process and its pipes before or after."""
    if task["is_quiet"]:
        time.sleep(task["seconds"])
    pipes = [n for n in range(256) if is_pipe(n)]
    link.send({"event": "at", "pid": os.getpid(), "pipes": pipes})
    if task.get("leaves"):
        left = subprocess.Popen(["sleep", "60"], start_new_session=True)
        link.send({"event": "left", "pid": left.pid})
    if not task["is_quiet"]:
        time.sleep(task["seconds"])


def is_pipe(descriptor: int) -> bool:
    """Return whether a descriptor is open and one of a pipe."""
    try:
        return stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except OSError:
        return False
