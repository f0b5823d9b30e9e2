"""Inside the sandbox: start a process for each solution.

This file, `frames`, `calling`, `events`, `building` and `execution/limits` import the
standard library and torch, and nothing else of ours is visible where they run.

`python worker.py CHANNEL DEVICE` is the first process of the sandbox. It runs no code of
a solution: it imports torch, forks a process for each solution, and afterwards ends all
processes but itself and empties the folders that they could write to.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Any

_FOLDERS = ("/tmp", "/dev/shm")


def main() -> None:
    """Serve the judge until it closes the channel."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    device = sys.argv[2]
    sys.path.insert(0, os.path.dirname(__file__))
    limits = importlib.import_module("limits")
    frames: Any = importlib.import_module("frames")
    # nobody of the same user may look into this process; what a solution leaves behind
    # becomes a child of it, where the judge sees it
    limits.hide_memory()
    limits.adopt_orphans()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    torch = importlib.import_module("torch")
    calling: Any = importlib.import_module("calling")
    torch.set_num_threads(1)
    gc.freeze()
    frames.send(channel, {"ready": torch.__version__})
    child = 0
    while True:
        try:
            frame, files = frames.receive(channel)
        except (EOFError, OSError):
            os._exit(0)
        if "begin" in frame:
            child = os.fork()
            if child == 0:
                own = os.dup(files[0])
                channel.close()
                os.close(files[0])
                limits.hide_memory(hidden=False)
                try:
                    calling.Solution(socket.socket(fileno=own), device).serve()
                except (EOFError, OSError):
                    os._exit(0)
                finally:
                    os._exit(1)
            for file in files:
                os.close(file)
            frames.send(channel, {"begun": child})
        else:
            frames.send(channel, {"ended": _end(child)})


def _end(child: int) -> int:
    """End all other processes, empty what they could write to; return an exit code."""
    own, status = os.getpid(), None
    while True:
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        with suppress(ChildProcessError):
            while True:
                pid, ended = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                status = ended if pid == child else status
        if {int(n) for n in os.listdir("/proc") if n.isdecimal()} <= {1, own}:
            break
        time.sleep(0.001)
    for folder in (*_FOLDERS, os.getcwd()):
        _empty(folder)
    os.makedirs(os.environ.get("HOME", "/tmp/home"), 0o700, exist_ok=True)
    return 0 if status is None else os.waitstatus_to_exitcode(status)


def _empty(folder: str) -> None:
    """Remove what is in a folder, but not what is mounted there."""
    device = os.lstat(folder).st_dev
    for entry in os.scandir(folder):
        if entry.stat(follow_symlinks=False).st_dev != device:
            continue
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.path)
            continue
        with suppress(OSError):
            os.chmod(entry.path, 0o700)
            _empty(entry.path)
            os.rmdir(entry.path)


if __name__ == "__main__":
    main()
