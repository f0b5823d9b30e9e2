"""Have the kernels compiled that tests need, by a process that may be ended."""

from __future__ import annotations

import importlib.metadata
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from generator.execution.cores import usable_cores
from generator.execution.gpus import VISIBLE, visible_gpus
from generator.execution.processes import safe_environment, start_python

STAMP = "reference-kernels.json"
"""Lies among FlashInfer's compiled modules: definitions for which they are complete."""

# of a process that said its last word, until it is killed
_END_SECONDS = 10.0
# a call that takes longer has compiled something
_COMPILED_SECONDS = 2.0
Say = Callable[[str], object]


@dataclass(frozen=True)
class Job:
    """The definitions to warm up, by rendered file, and the number of modules at a time."""

    files: Mapping[str, list[str]]
    jobs: int


def usual_jobs() -> int:
    """Return how many modules to compile at a time: half of them have one or two files."""
    return max(1, usable_cores() * 3 // 8)


def cold(live: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return the definitions, by rendered file, whose kernels nobody compiled yet.

    Imports nothing of FlashInfer's; none are cold where it is not installed.
    """
    stamps = _stamps()
    if stamps is None:
        return {}
    compiled: set[str] = set()
    for stamp in stamps:
        # half a file is none: it is written again
        with suppress(OSError, ValueError):
            compiled.update(json.loads(stamp.read_text("ascii")))
    left = {
        file: [n for n in names if n not in compiled] for file, names in live.items()
    }
    return {file: names for file, names in left.items() if names}


def all_cold() -> bool:
    """Return whether FlashInfer is installed and nobody compiled any kernel yet."""
    return _stamps() == []


def _stamps() -> list[Path] | None:
    """Return the stamps of the installed FlashInfer, one a GPU's model; None without it."""
    try:
        version = importlib.metadata.version("flashinfer-python")
    except importlib.metadata.PackageNotFoundError:
        return None
    base = Path(os.environ.get("FLASHINFER_WORKSPACE_BASE") or Path.home())
    return list((base / ".cache" / "flashinfer" / version).glob(f"*/{STAMP}"))


class Compilation:
    """Compile the kernels of a job in a process of its own; know who still waits for it.

    The process starts at once and imports FlashInfer; `begin` gives it the job. `cold`
    holds the definitions whose kernels are not compiled yet. `package` is the one whose
    `warm_worker` does it: that which the rendered files import, in `folder`. `say` gets a
    line on each module, in the thread that calls `take`. `environment` is added to this
    process's own.
    """

    def __init__(
        self,
        package: str,
        folder: Path,
        say: Say,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.cold: set[str] = set()
        self._say = say
        self._counts = {"compiling": 0, "compiled": 0, "failed": 0}
        # each line that the process writes, then nothing more: None
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - `_end` closes it
        self._process = _start(package, folder, self._log, environment or {})
        self._begun = self._done = self._closed = False

    def begin(self, job: Job) -> None:
        """Give the process its job, and say so."""
        self._begun = True
        self.cold = {name for names in job.files.values() for name in names}
        self._say(
            f"compiling kernels of {len(self.cold)} definitions, {job.jobs} modules "
            "at a time"
        )
        Thread(target=self._talk, args=[job], daemon=True).start()

    def _talk(self, job: Job) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError), self._process.stdin as stdin:
            stdin.write(json.dumps(vars(job)).encode())
        with self._process.stdout as stdout:
            for line in stdout:
                self._lines.put(line)
        self._lines.put(None)

    def take(self, *, wait: bool) -> None:
        """Take in what the process wrote since; if `wait`, at least one thing of it."""
        while not self._closed:
            try:
                line = self._lines.get(block=wait)
            except Empty:
                return
            wait = False
            if line is not None:
                self._hear(json.loads(line))
                continue
            status = self._end(_END_SECONDS)
            if not self._done:
                self._say(f"compiling ended with status {status}")

    def _hear(self, event: Mapping[str, Any]) -> None:
        kind, name = event["event"], event.get("name", "")
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if kind == "compiled":
            of = f"{self._counts['compiled']} of {self._counts['compiling']}"
            self._say(f"compiled {name} ({of}, {event['seconds']:.0f} s)")
        elif kind == "called" and event["seconds"] >= _COMPILED_SECONDS:
            self._say(f"called {name} ({event['seconds']:.0f} s)")
        elif kind == "failed":
            self._say(f"could not compile {name}: {event['why']}")
        elif kind == "ready":
            self.cold.discard(name)
        elif kind == "done":
            self._done = True

    def finish(self) -> bool:
        """Wait until all is compiled; return whether all went well."""
        try:
            while not self._closed:
                self.take(wait=True)
        finally:
            self.close()
        return self._done and not self._counts["failed"]

    def close(self) -> None:
        """End the process; where all is compiled, let it note that first."""
        if not self._closed:
            self._end(_END_SECONDS if self._begun and not self.cold else 0.0)

    def _end(self, seconds: float) -> str:
        """Kill the process unless it exits within `seconds`; return status and last line."""
        self._closed = True
        self.cold.clear()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        # compilers that it started end as well
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        if not self._begun:
            # nobody else closes its pipes
            self._process.communicate()
        status = self._process.wait()
        with self._log as log:
            log.seek(0)
            last = log.read().decode("utf-8", "replace").strip().splitlines()[-1:]
        return f"{status}: {' '.join(last)[:300]}"


def _start(
    package: str, folder: Path, log: Any, more: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    environment = {**safe_environment(paths=[os.path.abspath(folder)]), **more}
    if gpus := visible_gpus().found:
        # FlashInfer compiles for all models that it sees, a test's worker sees one
        environment[VISIBLE] = gpus[0].name
    return start_python(
        ["-m", f"{package}.warm_worker"],
        environment=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,
    )
