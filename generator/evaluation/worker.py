"""Inside the sandbox: start the processes of each solution, stop and end them.

This file, `namespaces`, `frames`, `calling`, `building` and those of the clock import
the standard library and torch, and nothing else of ours is visible where they run.

`python worker.py CHANNEL DEVICE` is the first process of the sandbox. It runs no code of
a solution: it imports torch, and forks a keeper for each solution. The keeper is the
first process of namespaces of its own: what runs there can neither stop nor end it. It
forks the solution's process, stops everything when the judge reads, and takes everything
along when it ends.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

_STOPPED = (b"T", b"t", b"Z", b"X")
# a process that waits for a child of vfork stops only when that goes on: tried again
_TRIES, _TRY_SECONDS = 10, 0.2

Thread = tuple[str, str, str, str]
"""The pid, name and state of a thread, and how often it ran."""


def main() -> None:
    """Serve the judge until it closes the channel."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    namespaces: Any = importlib.import_module("namespaces")
    frames: Any = importlib.import_module("frames")
    importlib.import_module("calling")
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.close(null)
    # what an import makes stays
    gc.disable()
    torch = importlib.import_module("torch")
    gc.enable()
    torch.set_num_threads(1)
    gc.freeze()
    frames.send(channel, {"ready": torch.__version__})
    keeper = 0
    while True:
        try:
            frame, files = frames.receive(channel)
        except (EOFError, OSError):
            os._exit(0)
        if keeper:
            # all that is below it ends before it does
            os.kill(keeper, signal.SIGKILL)
            os.waitpid(keeper, 0)
        keeper, failed = 0, ""
        try:
            namespaces.begin_processes()
            keeper = os.fork()
            if keeper == 0:
                channel.close()
                _keep(frame, files, sys.argv[2])
        except OSError as error:
            failed = str(error)
        for file in files:
            os.close(file)
        frames.send(channel, {"failed": failed})


def _keep(how: Mapping[str, Any], files: Sequence[int], device: str) -> None:
    """Be the keeper of one solution; never returns."""
    try:
        namespaces: Any = importlib.import_module("namespaces")
        keeper = socket.socket(fileno=files[0])
        # one that is handled would reach it, the first process, from inside as well
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            namespaces.enter(how)
            namespaces.hide(hidden=True)
            _Keeper(keeper, _forked(how, files, device)).serve()
        except OSError as error:
            frames: Any = importlib.import_module("frames")
            frames.send(keeper, {"failed": str(error)})
    except (EOFError, OSError):
        os._exit(0)
    finally:
        os._exit(1)


def _forked(how: Mapping[str, Any], files: Sequence[int], device: str) -> int:
    """Start the solution's process, which has its own channel alone."""
    pid = os.fork()
    if pid:
        os.close(files[1])
        return pid
    try:
        os.close(files[0])
        signal.signal(signal.SIGINT, signal.default_int_handler)
        namespaces: Any = importlib.import_module("namespaces")
        calling: Any = importlib.import_module("calling")
        namespaces.hide(hidden=False)
        namespaces.filter_calls(bytes.fromhex(how["filter"]))
        os.environ["HOME"] = namespaces.HOME
        channel = socket.socket(fileno=files[1])
        try:
            solution = calling.BuiltSolution(channel, device)
        except Exception as error:  # noqa: BLE001 - as where a GPU has no memory left
            frames: Any = importlib.import_module("frames")
            frames.send(channel, {"failed": str(error)})
            os._exit(1)
        solution.serve()
    except (EOFError, OSError):
        os._exit(0)
    finally:
        os._exit(1)
    return 0


class _Keeper:
    """All processes of a namespace but this one, its first, which it stops and watches."""

    def __init__(self, channel: socket.socket, pid: int) -> None:
        self._frames: Any = importlib.import_module("frames")
        self._channel, self._pid = channel, pid
        self._status: int | None = None

    def serve(self) -> None:
        """Answer the judge until it closes the channel: all processes end then."""
        if not self._threads():
            raise OSError("/proc shows no thread of it")
        self._frames.send(self._channel, {"ready": True})
        while True:
            frame, _ = self._frames.receive(self._channel)
            answer: dict[str, Any]
            if frame["do"] == "stop":
                moving, state = self._stop()
                answer = {"moving": moving, "state": state}
            elif frame["do"] == "check":
                answer = {"state": self._threads()}
            elif frame["do"] == "go":
                self._signal(signal.SIGCONT)
                continue
            elif frame["do"] == "measure":
                answer = {"used": self._used()}
            elif frame["do"] == "peak":
                answer = {"peak": self._peak()}
            else:
                answer = {"ended": self._ended(frame["within"])}
            self._frames.send(self._channel, answer)

    def _stop(self) -> tuple[list[str], list[Thread]]:
        """Stop everything; return the threads that can't be, as text, and all threads."""
        moving: list[str] = []
        state: list[Thread] = []
        for _ in range(_TRIES):
            until = time.monotonic() + _TRY_SECONDS
            while time.monotonic() < until:
                self._signal(signal.SIGSTOP)
                self._reap()
                # how often a thread ran is read after its state: it is stopped by then
                state = self._threads()
                moving = [
                    f"{pid} {name} {does}"
                    for pid, name, does, _ in state
                    if does.encode() not in _STOPPED
                ]
                if not moving:
                    return [], state
                time.sleep(0.0002)
            self._signal(signal.SIGCONT)
            time.sleep(0.005)
        return moving[:4], state

    def _threads(self) -> list[Thread]:
        """Return each thread of all other processes: pid, name, state, how often it ran.

        A process whose first thread ended is a zombie there, whatever its others do.
        """
        threads = []
        for pid in os.listdir("/proc"):
            if not pid.isdecimal() or pid == "1":
                continue
            with suppress(OSError):
                for thread in os.listdir(f"/proc/{pid}/task"):
                    with suppress(OSError):
                        at = f"{pid}/{thread}"
                        threads.append((at, *thread_in(f"/proc/{pid}/task/{thread}")))
        return sorted(threads)

    def _used(self) -> dict[str, int]:
        """Return what all other processes have: bytes, threads, open files.

        The bytes are those of memory that is no file's, and of files that lie in memory.
        """
        disk = os.statvfs("/tmp")
        used = {"bytes": (disk.f_blocks - disk.f_bfree) * disk.f_frsize}
        used |= {"threads": 0, "descriptors": 0}
        for pid in os.listdir("/proc"):
            if not pid.isdecimal() or pid == "1":
                continue
            with suppress(OSError):
                with open(f"/proc/{pid}/statm", "rb", 0) as file:
                    _, resident, shared, *_ = map(int, file.read(200).split())
                used["bytes"] += (resident - shared) * os.sysconf("SC_PAGESIZE")
                used["threads"] += len(os.listdir(f"/proc/{pid}/task"))
                used["descriptors"] += len(os.listdir(f"/proc/{pid}/fd"))
        return used

    def _peak(self) -> dict[str, int]:
        """Return the resident bytes of all other processes, now and at most, and of files.

        What they have at most begins anew.
        """
        disk = os.statvfs("/tmp")
        most = {"files": (disk.f_blocks - disk.f_bfree) * disk.f_frsize}
        most |= {"resident": 0, "peak": 0}
        for pid in os.listdir("/proc"):
            if pid.isdecimal() and pid != "1":
                with suppress(OSError):
                    resident, peak = resident_in(f"/proc/{pid}")
                    most["resident"] += resident
                    most["peak"] += peak
        return most

    def _ended(self, within: float) -> int | None:
        """Return how the solution's process ended, None where it lives on for so long."""
        until = time.monotonic() + within
        self._reap()
        while self._status is None and time.monotonic() < until:
            time.sleep(0.001)
            self._reap()
        if self._status is None:
            return None
        return os.waitstatus_to_exitcode(self._status)

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == self._pid:
                    self._status = status

    def _signal(self, number: int) -> None:
        """Send a signal to all processes of the namespace but this one."""
        with suppress(ProcessLookupError):
            os.kill(-1, number)


def resident_in(folder: str) -> tuple[int, int]:
    """Return the resident bytes of a process, and the most since this was last asked.

    Raises OSError. One that keeps others of its user out had that much once, not since.
    """
    with open(f"{folder}/status", "rb", 0) as file:
        text = file.read(8192).decode("ascii", "replace")
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    # a process that ended has neither
    sizes = [fields.get(name, "0").split()[0] for name in ("VmRSS", "VmHWM")]
    with suppress(OSError), open(f"{folder}/clear_refs", "wb", 0) as file:
        file.write(b"5")
    return int(sizes[0]) << 10, int(sizes[1]) << 10


def thread_in(folder: str) -> tuple[str, str, str]:
    """Return a thread's name, its state, and how often it ran. Raises OSError.

    Where the kernel does not count that, its time on processors stands for it.
    """
    with open(f"{folder}/stat", "rb", 0) as file:
        text = file.read(1024)
    name = text[text.index(b"(") + 1 : text.rindex(b")")].decode("ascii", "replace")
    state, *others = text[text.rindex(b")") + 2 :].decode().split()
    try:
        with open(f"{folder}/schedstat", "rb", 0) as file:
            ran = file.read(200).decode().split()[-1]
    except FileNotFoundError:
        # fields 14 and 15, where the state is the third
        ran = " ".join(others[10:12])
    return name, state, ran


if __name__ == "__main__":
    main()
