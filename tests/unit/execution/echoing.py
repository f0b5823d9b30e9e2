"""The child's side of a test's task: it sends its arguments back, or has a mishap."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from typing import Any

from generator.execution.child import Link


def answer(task: Mapping[str, Any], link: Link) -> None:
    """Send the arguments; a definition named after a mishap has that one."""
    name = task["file"]["name"]
    if name == "raises":
        raise ValueError("on\npurpose")
    if name == "dies":
        os._exit(5)
    if name == "hangs":
        signal.pause()
    if name == "kills the worker":
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()
    if name == "says no event":
        os.write(link.fileno(), b"[]\n")
        signal.pause()
    if name == "is done at once":
        link.send({"event": "done"})
        signal.pause()
    link.send({"event": "task", "task": dict(task)})
