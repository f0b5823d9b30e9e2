"""Run a command confined, watch what it uses, and kill all of it at a limit."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from generator.execution.sandbox import cuda
from generator.execution.sandbox.captured import CapturedOutput
from generator.execution.sandbox.layers import layers, own_command
from generator.execution.sandbox.plan import (
    PROCESSES,
    SYSTEM,
    Limits,
    SandboxPlan,
    added_paths,
    interpreter_paths,
)
from generator.execution.sandbox.tree import descendants, use_of

_TICK = 0.05
_FLOOD = 256
"""A command is killed that writes this many times the output that is kept."""
_ENTRIES = 100_000
"""Files and folders that the working folder may hold."""
_THREADS = 4
"""Threads of numerical libraries: each counts, on a large machine there are many."""


@dataclass(frozen=True)
class Outcome:
    """How a confined command ended, and what it said."""

    status: str
    """`exited`, `killed` (by a signal), `limit` or `not started`."""
    exit_status: int | None
    signal: int | None
    timed_out: bool
    limit: str | None
    """What it ran into: wall clock, cpu time, memory, processes, disk, …"""
    stdout: str
    stderr: str
    truncated: bool
    seconds: float
    detail: str
    """Why it was not started, or what the sandbox had to leave out."""

    @property
    def ok(self) -> bool:
        """Whether it ended by itself and said that all was well."""
        return self.status == "exited" and self.exit_status == 0


def run_confined(
    command: Sequence[str],
    *,
    read_only: Sequence[Path],
    work: Path,
    limits: Limits | None = None,
    environment: Mapping[str, str] | None = None,
    devices: bool = False,
    without: Collection[str] = (),
) -> Outcome:
    """Run a command in every layer that this machine has; never raises for what it does.

    It sees the interpreter, the system's libraries, `read_only` and `work`, writes only
    to `work` and to temporary folders of its own, and nothing of it is left afterwards.
    `devices` lets it use CUDA; `without` leaves out layers, for tests.
    """
    limits = limits or Limits()
    if not sys.platform.startswith("linux"):
        return _not_started(f"the sandbox needs Linux, this is {sys.platform}")
    if not work.is_dir():
        return _not_started(f"{work}: no such folder")
    read, write = os.pipe()
    with _scratch() as scratch, open(read, "rb") as report:
        plan = SandboxPlan(
            command=[*command],
            environment={**_environment(devices), **(environment or {})},
            active=[layer.name for layer in layers(without) if layer.active],
            read_only=_both_names(read_only),
            work=os.path.realpath(work),
            scratch=scratch,
            devices=cuda.devices() if devices else [],
            limits=limits,
            parent=os.getpid(),
            report=write,
            interpreter=interpreter_paths(),
        )
        if devices:
            plan = _with_cuda(plan)
        try:
            started = subprocess.Popen(
                [*own_command("launch"), plan.to_json()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={},
                cwd="/",
                pass_fds=[write],
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return _not_started(str(error))
        finally:
            os.close(write)
        return _Watch(started, plan).outcome(report)


def read_result(work: Path, name: str, limit: int = 16 << 20) -> bytes | None:
    """Return a file that a confined command wrote; None unless it is a plain, small one.

    No part of the name may be a link: it could lead to a file of the reader.
    """
    place = os.open(work, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in (parts := Path(name).parts):
            kind = 0 if part is parts[-1] else os.O_DIRECTORY
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | kind
            inner = os.open(part, flags, dir_fd=place)
            os.close(place)
            place = inner
        found = os.fstat(place)
        if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
            return None
        if found.st_nlink != 1:
            return None
        with open(place, "rb", closefd=False) as file:
            return file.read(limit + 1)[:limit]
    except OSError:
        return None
    finally:
        os.close(place)


class _Watch:
    """One run from outside: its output, its use, its end."""

    def __init__(self, started: subprocess.Popen[bytes], plan: SandboxPlan) -> None:
        self.started = started
        self.plan = plan
        self.began = time.monotonic()
        kept = plan.limits.output_bytes
        self.streams = {"stdout": CapturedOutput(kept), "stderr": CapturedOutput(kept)}
        self.limit: str | None = None

    def outcome(self, report: IO[bytes]) -> Outcome:
        """Watch until nothing is left; returns how it went."""
        try:
            self._watch()
        finally:  # also when the reader presses Ctrl-C
            self._kill()
            self.started.wait()
        seconds = time.monotonic() - self.began
        return self._judge(_said(report), seconds)

    def _watch(self) -> None:
        looked = 0.0
        with selectors.DefaultSelector() as ready:
            for name in self.streams:
                pipe: IO[bytes] = getattr(self.started, name)
                os.set_blocking(pipe.fileno(), False)
                ready.register(pipe, selectors.EVENT_READ, self.streams[name])
            while self.limit is None:
                for key, _ in ready.select(_TICK):
                    pipe = key.fileobj  # type: ignore[assignment]
                    if not key.data.take(pipe):
                        ready.unregister(pipe)
                if not ready.get_map():
                    # nobody can write any more; the rest is for the clock
                    with suppress(subprocess.TimeoutExpired):
                        self.started.wait(_TICK)
                if self.started.poll() is not None:
                    self._drain()
                    return
                if time.monotonic() - looked >= _TICK:
                    self.limit = self._exceeded()
                    looked = time.monotonic()
            self._kill()
            self._drain()

    def _exceeded(self) -> str | None:
        """Return the limit that has been passed; None while there is none."""
        limits = self.plan.limits
        if time.monotonic() - self.began > limits.wall_seconds:
            return "wall clock"
        if any(s.total > _FLOOD * limits.output_bytes for s in self.streams.values()):
            return "output"
        use = use_of(descendants(self.started.pid))
        if use.memory_bytes > limits.memory_bytes:
            return "memory"
        if use.threads > limits.processes + 1:  # and the one that waits for them
            return "processes"
        if _disk_is_full(self.plan.work, limits.disk_bytes):
            return "disk"
        return None

    def _kill(self) -> None:
        """Kill all that the launcher started, whatever it does, then the launcher."""
        until = time.monotonic() + 10
        while self.started.poll() is None and time.monotonic() < until:
            below = descendants(self.started.pid)
            # the process that adopts the others last: without a namespace it is all
            # that keeps them in this tree
            last = [] if self.plan.has(PROCESSES) else below[:1]
            for process in [p for p in below if p not in last] or below:
                with suppress(OSError):
                    os.kill(process, signal.SIGKILL)
            if not below:
                self.started.kill()
            with suppress(subprocess.TimeoutExpired):
                self.started.wait(0.02)
        if self.started.poll() is None:
            self.started.kill()

    def _drain(self) -> None:
        for name, captured in self.streams.items():
            pipe: IO[bytes] = getattr(self.started, name)
            while captured.total <= 2 * _FLOOD * captured.keep and captured.take(pipe):
                if captured.dry:
                    break
            pipe.close()

    def _judge(self, said: dict[str, Any], seconds: float) -> Outcome:
        ended = os.waitstatus_to_exitcode(said["status"]) if "status" in said else None
        number = -ended if ended is not None and ended < 0 else None
        spent = float(said.get("cpu", 0)) >= self.plan.limits.cpu_seconds
        limit = self.limit or _limit_of(number, spent)
        detail = said.get("without") or ""
        if "not_started" in said:
            status, detail = "not started", said["not_started"]
        elif limit is not None:
            status = "limit"
        elif ended is None:
            status, detail = "killed", "its supervisor was killed with it"
        else:
            status = "killed" if number is not None else "exited"
        out, err = self.streams["stdout"], self.streams["stderr"]
        return Outcome(
            status=status,
            exit_status=ended if status == "exited" else None,
            signal=number,
            timed_out=limit == "wall clock",
            limit=limit if status == "limit" else None,
            stdout=out.text(),
            stderr=err.text(),
            truncated=out.truncated or err.truncated,
            seconds=seconds,
            detail=detail,
        )


def _limit_of(number: int | None, spent: bool) -> str | None:
    """Return the limit for which the kernel sent a signal; None if for none."""
    if number == signal.SIGXCPU or (number == signal.SIGKILL and spent):
        return "cpu time"
    return "file size" if number == signal.SIGXFSZ else None


def _said(report: IO[bytes]) -> dict[str, Any]:
    try:
        said = json.loads(report.read() or b"{}")
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _disk_is_full(folder: str, most: int) -> bool:
    """Return whether a folder holds more than it may, in bytes or in entries."""
    total = entries = 0
    waiting = [folder]
    while waiting:
        try:
            inside = os.scandir(waiting.pop())
        except OSError:  # gone meanwhile, or closed to us: what it holds counts below
            continue
        with inside:
            for entry in inside:
                entries += 1
                with suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                if total > most or entries > _ENTRIES:
                    return True
    return False


def _both_names(paths: Sequence[Path]) -> list[str]:
    """Return paths as they were given and as they are without links."""
    given = [os.path.abspath(path) for path in paths]
    return list(dict.fromkeys(given + [os.path.realpath(path) for path in given]))


def _with_cuda(plan: SandboxPlan) -> SandboxPlan:
    """Return the plan with the toolkit, and with the mounts below what is readable."""
    home = cuda.toolkit(os.environ)
    plan = replace(plan, interpreter=[*plan.interpreter, *([home] if home else [])])
    with suppress(OSError):
        mountinfo = Path("/proc/self/mountinfo").read_text("utf-8", "replace")
        readable = [*SYSTEM, *plan.interpreter]
        plan = replace(plan, mounted=cuda.mounts_below(readable, mountinfo))
    return plan


def _environment(devices: bool) -> dict[str, str]:
    """Return what programs need to run, and nothing else of the caller's."""
    added = added_paths(os.environ.get("PYTHONPATH", ""))
    # pip puts programs beside packages: ninja, which compiles kernels, is one
    folders = [os.path.dirname(sys.executable), *(f"{path}/bin" for path in added)]
    folders += ["/usr/local/bin", "/usr/bin", "/bin"]
    threads = str(min(_THREADS, os.cpu_count() or 1))
    path = ":".join(folders)
    return {
        **({"PYTHONPATH": os.pathsep.join(added)} if added else {}),
        "PATH": path,
        "LANG": "C.UTF-8",
        "USER": "review",
        "LOGNAME": "review",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        **(cuda.environment(os.environ, path) if devices else {}),
    }


@contextmanager
def _scratch() -> Iterator[str]:
    """Yield a folder for this run; removes it whatever the command made of it."""
    folder = os.path.realpath(tempfile.mkdtemp(prefix="sandbox-"))
    try:
        for name in ("root", "home", "tmp"):
            os.mkdir(f"{folder}/{name}", 0o700)
        yield folder
    finally:
        for path, folders, _ in os.walk(folder):
            for name in folders:
                with suppress(OSError):
                    if not os.path.islink(f"{path}/{name}"):
                        os.chmod(f"{path}/{name}", 0o700)
        shutil.rmtree(folder, ignore_errors=True)


def _not_started(detail: str) -> Outcome:
    return Outcome("not started", None, None, False, None, "", "", False, 0.0, detail)
