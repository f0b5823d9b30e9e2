"""The functions of a test's tasks: each returns its arguments, or has a mishap."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from generator.execution.child import Link
from generator.execution.outcome import CannotRun


def answer(task: Mapping[str, Any], link: Link) -> dict[str, Any]:
    """Return the arguments; a definition named after a mishap has that one."""
    name = task["file"]["name"]
    link.at("at its place", within=3.0)
    if name == "refuses":
        raise CannotRun("it may not")
    if name == "raises":
        raise ValueError("on\npurpose")
    if name == "is short of memory":
        raise MemoryError("not enough memory")
    if name == "dies":
        os._exit(5)
    if name == "hangs":
        link.say("about to hang")
        link.at("at its end", within=0.5)
        signal.pause()
    if name == "kills the server":
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()
    if name == "writes to the link":
        os.write(link.fileno(), b"[]\n")
        signal.pause()
    if name == "is done at once":
        link.send({"event": "done"})
        signal.pause()
    if name.startswith("is killed once"):
        mark = Path(task["root"], "killed")
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    if name.startswith("waits"):
        time.sleep(1.0)
    value = {
        **task,
        "rows": [],
        "secret": os.environ.get("PLANTED_SECRET"),
        "caches": os.environ.get("FLASHINFER_WORKSPACE_BASE"),
        "home": os.environ.get("HOME"),
    }
    if name == "answers something else":
        value = {}
    if name == "leaves something":
        value["left"] = subprocess.Popen(["sleep", "60"], start_new_session=True).pid
    return value
