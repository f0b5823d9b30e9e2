"""Fork processes from one that has imported what they need, once for a whole host.

`python -c ... serve` is that process, the fork_server: any process that knows its address
gets a fork, and need not be its parent. A fork finds the modules imported; its three
standard streams, its environment and its paths are those that it was asked for with.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

from generator.execution.processes import safe_environment, start_python

# what a fork is told first: the length of the request, beside the open files
_LENGTH = 8
_BACKLOG = 1024
# of a fork that ended when nobody was left who could tell how
UNKNOWN = 256
# what CUDA opens when it is first used, but not NVIDIA's management library
_CUDA = "/dev/nvidia-uvm"
_BOOT = (
    "import importlib, json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "importlib.import_module(sys.argv[2]).serve(*json.loads(sys.argv[3]))"
)


class ForkServer:
    """The process that imports and forks; it ends with this one.

    `prepare` is the function, as `module:name`, that it calls with `arguments` before it
    forks for the first time. Who asks meanwhile waits.
    """

    def __init__(
        self,
        prepare: str,
        arguments: Sequence[Any],
        paths: Sequence[str],
        environment: Mapping[str, str],
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fork-server-")
        self.address = os.path.join(self._folder.name, "socket")
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.address)
            listener.listen(_BACKLOG)
            request = json.dumps([listener.fileno(), prepare, arguments])
            boot = [_BOOT, json.dumps(paths), __name__, request]
            self._process = start_python(
                ["-W", "ignore", "-c", *boot],
                stdin=subprocess.PIPE,
                stdout=self._log,
                stderr=self._log,
                pass_fds=[listener.fileno()],
                environment=environment,
                start_new_session=True,
            )

    def stop(self) -> str:
        """End the process; return why it had ended before, or nothing.

        Its forks go on: each ends with the process that asked for it.
        """
        why, code = "", self._process.poll()
        if code is not None:
            text = os.pread(self._log.fileno(), 1 << 20, 0).decode("utf-8", "replace")
            last = (text.strip().splitlines() or [""])[-1][:200]
            why = f"it ended with {code}" + (f": {last}" if last else "")
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._log.close()
        self._folder.cleanup()
        return why


class Forked:
    """A fork of a fork server as subprocess.Popen holds a child."""

    def __init__(self, end: socket.socket, pid: int) -> None:
        self._end, self.pid = end, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return how the fork ended, None while it has not."""
        return self._look(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Return how the fork ended; TimeoutExpired if it takes so many seconds."""
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("a fork", timeout or 0.0)
        return code

    def _look(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._end], [], [], seconds)[0]:
            line = _line(self._end)
            self.returncode = json.loads(line) if line else UNKNOWN
            self._end.close()
        return self.returncode


def fork_at(
    address: str, function: str, files: Sequence[int], paths: Sequence[str], wait: float
) -> Forked | None:
    """Return a fork that calls a function, `module:name`, with its last open file.

    `files` are descriptors: the fork's standard input, what it prints to, and the last.
    None where the fork_server is gone, or silent for `wait` seconds.
    """
    request = {"function": function, "paths": paths, "environment": safe_environment()}
    text = json.dumps(request).encode()
    end = socket.socket(socket.AF_UNIX)
    try:
        end.settimeout(wait)
        end.connect(address)
        socket.send_fds(end, [len(text).to_bytes(_LENGTH, "big")], files)
        end.sendall(text)
        line = _line(end)
        end.settimeout(None)
        if line:
            return Forked(end, json.loads(line))
    except OSError:
        pass
    end.close()
    return None


def serve(descriptor: int, prepare: str, arguments: Sequence[Any]) -> None:
    """Prepare, then fork for everyone who asks until standard input ends."""
    _function(prepare)(*arguments)
    unfit = _why_unfit()
    if unfit:
        sys.exit(f"it can't be forked: {unfit}")
    gc.collect()
    # what was made so far is neither scanned nor, by that, copied in the forks
    gc.freeze()
    listener = socket.socket(fileno=descriptor)
    waiting: dict[int, socket.socket] = {}

    def reap(*_: object) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                with suppress(OSError), waiting.pop(ended[0]) as end:
                    _say(end, os.waitstatus_to_exitcode(ended[1]))

    signal.signal(signal.SIGCHLD, reap)
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        end, _ = listener.accept()
        # a fork that ends at once is reaped when it is known
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        pid = os.fork()
        if pid == 0:
            listener.close()
            _live(end)
        waiting[pid] = end
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])


def _live(end: socket.socket) -> NoReturn:
    """Do in a fork what it was asked for."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        # a group of its own, which the asking process kills
        os.setsid()
        length, files, _, _ = socket.recv_fds(end, _LENGTH, 3)
        text = b""
        while len(text) < int.from_bytes(length, "big"):
            more = end.recv(1 << 16)
            if not more:
                os._exit(1)
            text += more
        request = json.loads(text)
        for place, file in enumerate((files[0], files[1], files[1])):
            os.dup2(file, place)
        for file in files[:2]:
            os.close(file)
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.path[:] = request["paths"]
        # it stays open: that it ends is how the end is known if the fork server has gone
        _say(end, os.getpid())
        end.detach()
        _function(request["function"])(files[2])
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - nothing of the fork server's goes on here
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(1)


def _why_unfit() -> str:
    """Return why forks of this process would not work, or nothing."""
    if threading.active_count() > 1:
        names = ", ".join(thread.name for thread in threading.enumerate()[1:])
        return f"it runs threads ({names})"
    for file in os.scandir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        with suppress(OSError):
            if os.readlink(file.path).startswith(_CUDA):
                return "what it imported has initialised CUDA"
    return ""


def _function(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)


def _say(end: socket.socket, number: int) -> None:
    end.sendall(b"%d\n" % number)


def _line(end: socket.socket) -> bytes:
    """Return the next line, empty where the other end is gone."""
    text = b""
    with suppress(ConnectionError):
        while not text.endswith(b"\n") and (more := end.recv(1)):
            text += more
    return text
