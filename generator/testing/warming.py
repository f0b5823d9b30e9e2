"""Have the kernels compiled that tests need, by a process that may be ended."""

from __future__ import annotations

import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.execution.gpus import VISIBLE, visible_gpus

STAMP = "reference-kernels.json"
"""Lies among FlashInfer's compiled modules: definitions for which they are complete."""

# of a process that said its last word, until it is killed
_END_SECONDS = 10.0
Say = Callable[[str], object]


@dataclass(frozen=True)
class Job:
    """Say for which definitions, by rendered file, and how many modules at a time."""

    files: Mapping[str, list[str]]
    jobs: int


def usual_jobs() -> int:
    """Return how many modules to compile at a time: each takes several cores."""
    return max(1, len(os.sched_getaffinity(0)) // 4)


def cold(live: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return the definitions, by rendered file, whose kernels nobody compiled yet.

    Imports nothing of FlashInfer's; none are cold where it is not installed.
    """
    try:
        version = importlib.metadata.version("flashinfer-python")
    except importlib.metadata.PackageNotFoundError:
        return {}
    base = Path(os.environ.get("FLASHINFER_WORKSPACE_BASE") or Path.home())
    compiled: set[str] = set()
    for stamp in (base / ".cache" / "flashinfer" / version).glob(f"*/{STAMP}"):
        # half a file is none: it is written again
        with suppress(OSError, ValueError):
            compiled.update(json.loads(stamp.read_text("ascii")))
    left = {
        file: [n for n in names if n not in compiled] for file, names in live.items()
    }
    return {file: names for file, names in left.items() if names}


def warm(job: Job, package: str, say: Say) -> bool:
    """Compile the kernels of a job; say a line on each; return whether all went well.

    `package` is the one whose `warm_worker` does it: that which the files import.
    """
    names = sum(len(names) for names in job.files.values())
    say(f"compiling kernels of {names} definitions, {job.jobs} modules at a time")
    counts = {"compiling": 0, "compiled": 0, "failed": 0}
    ended = False
    with tempfile.TemporaryFile() as log, _start(job, package, log) as worker:
        try:
            assert worker.stdin is not None
            assert worker.stdout is not None
            with suppress(BrokenPipeError), worker.stdin as stdin:
                stdin.write(json.dumps(vars(job)).encode())
            for line in worker.stdout:
                event = json.loads(line)
                kind = event["event"]
                counts[kind] = counts.get(kind, 0) + 1
                ended |= kind == "done"
                if kind == "compiled":
                    of = f"{counts['compiled']} of {counts['compiling']}"
                    say(f"compiled {event['name']} ({of}, {event['seconds']:.0f} s)")
                elif kind == "called":
                    say(f"called {event['name']} ({event['seconds']:.0f} s)")
                elif kind == "failed":
                    say(f"could not compile {event['name']}: {event['why']}")
            with suppress(subprocess.TimeoutExpired):
                worker.wait(_END_SECONDS)
        finally:
            # compilers that it started end as well
            with suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
            status = worker.wait()
        if not ended:
            log.seek(0)
            last = log.read().decode("utf-8", "replace").strip().splitlines()[-1:]
            say(f"compiling ended with status {status}: {' '.join(last)[:300]}")
    return ended and not counts["failed"]


def _start(job: Job, package: str, log: Any) -> subprocess.Popen[bytes]:
    own = __name__.split(".")
    paths = [str(Path(__file__).resolve().parents[len(own) - 1])]
    paths += list(dict.fromkeys(str(Path(file).parent) for file in job.files))
    paths += filter(None, [os.environ.get("PYTHONPATH")])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    if gpus := visible_gpus().found:
        # FlashInfer compiles for all models that it sees, a test's worker sees one
        environment[VISIBLE] = gpus[0].name
    return subprocess.Popen(
        [sys.executable, "-m", f"{package}.warm_worker"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,
    )
