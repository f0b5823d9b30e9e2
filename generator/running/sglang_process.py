"""The test run's side of SGLang's worker: start it, exchange messages, end it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from generator.execution.processes import safe_environment, start_python
from generator.running.fork_server import UNKNOWN, Forked, ForkServer, fork_at
from generator.running.sglang_light import ENVIRONMENT, FORK_SERVER_VARIABLE
from generator.running.sglang_wire import SHARED_FROM, pack, receive, release, send

_LAST_LINES, _LAST_BYTES = 12, 4000
_PROBE_SECONDS = 120.0
_NURSERY_SECONDS = 300.0
# the paths of the asking process, so that both find the same SGLang
_BOOT = (
    "import importlib, json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "importlib.import_module(sys.argv[2]).main(int(sys.argv[3]))"
)


class Lost(Exception):
    """Raised where the worker ended; its last output follows the first line."""


class Deadline:
    """A timer beside a block that waits for the worker; its end becomes Lost.

    No generator: from Python 3.12 on, what is raised out of a generator's context holds
    the frames it passed, and so the inputs, until the garbage is collected. 17 GB of
    weights would stay on the device.
    """

    def __init__(self, process: Process, timer: threading.Timer) -> None:
        self._process, self._timer = process, timer

    def __enter__(self) -> None:
        """Start the timer."""
        self._timer.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the timer; raise Lost for a connection that ended."""
        try:
            if isinstance(error, (EOFError, OSError)):
                raise Lost(self._process.end_of_it()) from None
        finally:
            self._timer.cancel()
            self._timer.join()


class Process:
    """One worker process, the connection to it, and what it prints."""

    def __init__(self, package: str) -> None:
        self.connection, theirs = Pipe()
        # printed text must neither reach pytest's output nor fill a pipe
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self._expired = ""
        self._heard = 0
        # nobody writes to it: its end is that of this process
        life, self._life = os.pipe()
        self._process = _begin(package, life, self._log.fileno(), theirs.fileno())
        os.close(life)
        theirs.close()

    def start(self, seconds: float) -> str | None:
        """Wait for SGLang's import; return why it failed, None where it did not."""
        with self.deadline(seconds, f"took over {seconds:g} s"):
            kind, what = self.connection.recv()
        return what if kind == "failed" else None

    def deadline(self, seconds: float, complaint: str) -> Deadline:
        """Return a context that kills the worker when time is up.

        The worker's end is raised as Lost. What it prints from now on is what it
        printed last.
        """
        self._heard = os.fstat(self._log.fileno()).st_size
        timer = threading.Timer(seconds, self._expire, [complaint])
        timer.daemon = True
        return Deadline(self, timer)

    def is_alive(self) -> bool:
        """Return whether the process has not ended."""
        return self._process.poll() is None

    def end_of_it(self) -> str:
        """Wait until the worker has ended; return how, and what it printed last."""
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._kill()
        status = self._process.wait()
        how = self._expired or f"ended with {_meaning(status)}"
        last = self._last_words()
        return f"{how}; it printed last:\n{last}" if last else how

    def stop(self) -> None:
        """End the process and those that it started; returns when it is gone."""
        self.connection.close()
        os.close(self._life)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)
        self._kill()
        self._process.wait()
        self._log.close()

    def _expire(self, complaint: str) -> None:
        self._expired = complaint
        self._kill()

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _last_words(self) -> str:
        # read at a place: seeking would move where the worker writes
        size = os.fstat(self._log.fileno()).st_size
        start = max(self._heard, size - _LAST_BYTES)
        text = os.pread(self._log.fileno(), _LAST_BYTES, start).decode(
            "utf-8", "replace"
        )
        return "\n".join(line[:200] for line in text.splitlines()[-_LAST_LINES:])


def _begin(
    package: str, life: int, log: int, connection: int
) -> subprocess.Popen[bytes] | Forked:
    """Start the worker, as a fork where there is a fork server that lives."""
    worker, paths = f"{package}.sglang_worker", _paths(package)
    address = os.environ.get(FORK_SERVER_VARIABLE)
    if address:
        files = [life, log, connection]
        function = f"{worker}:main"
        forked = fork_at(address, function, files, paths, _NURSERY_SECONDS)
        if forked is not None:
            return forked
    return start_python(
        ["-W", "ignore", "-c", _BOOT, json.dumps(paths), worker, str(connection)],
        stdin=life,
        stdout=log,
        stderr=log,
        pass_fds=[connection],
        environment={**ENVIRONMENT, **safe_environment(), "PYTHONUNBUFFERED": "1"},
        start_new_session=True,
    )


def fork_server(package: str, gpu: tuple[int, str] | None) -> ForkServer:
    """Start a process that imports SGLang once, for the workers of a whole run.

    `gpu` are the compute capability, 90 for 9.0, and the name of the GPUs that the
    workers will use: the fork server itself must not ask CUDA, which a fork could not use
    then.
    """
    # libgomp's threads do not live on in a fork; a worker has its own number of them
    environment = {**ENVIRONMENT, **safe_environment(), "OMP_NUM_THREADS": "1"}
    environment["PYTHONUNBUFFERED"] = "1"
    prepare = f"{package}.sglang_worker:prepare"
    return ForkServer(prepare, [gpu], _paths(package), environment)


def _paths(package: str) -> list[str]:
    """Return this process's paths, and the folder of the package."""
    root = str(Path(__file__).parents[len(package.split("."))])
    paths = [str(path) for path in sys.path]
    return paths if root in paths else [*paths, root]


def _meaning(status: int) -> str:
    if status == UNKNOWN:
        return "a status that nobody saw: its fork server was gone"
    if status >= 0:
        return f"status {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"


def exchange(
    process: Process, request: tuple[Any, ...], seconds: float, *, share: bool
) -> tuple[str, Any]:
    """Send a request, return the reply: its kind and its value.

    The inputs must live until this returns: with `share` the worker uses the memory of
    large CUDA tensors itself.
    """
    cuda: Any = torch.cuda
    used = cuda.is_initialized()
    if used:
        cuda.empty_cache()  # room for what the worker computes
        cuda.synchronize()
    message = pack(request, share=share)
    try:
        with process.deadline(seconds, f"did not answer in {seconds:g} s"):
            send(process.connection, message)
            kind, value = receive(process.connection)
    except BaseException:
        release(message)
        raise
    finally:
        if used:
            cuda.ipc_collect()
    return kind, value


def try_sharing(process: Process, device: torch.device, seconds: float) -> str:
    """Return why the worker can't use memory of this process's GPU; empty if it can.

    Some containers forbid CUDA's handles, and MIG has none. The worker writes to a small
    tensor, and the writing must be seen here.
    """
    probe = torch.zeros(SHARED_FROM, dtype=torch.uint8, device=device)
    seconds = min(seconds, _PROBE_SECONDS)
    try:
        kind, value = exchange(process, ("probe", probe), seconds, share=True)
        if kind != "answer":
            return f"{value['type']}: {value['message'].splitlines()[0]}"
        seen = bool((probe == 1).all())
    except (Lost, RuntimeError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return "" if seen else "what the worker writes is not seen here"
