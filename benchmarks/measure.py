"""Measure whole processes: wall time, CPU time, and the largest resident set of any run.

Limits are of the least CPU time of several runs, that of the processes that a command
started included: on a quiet core it is the wall time, and others who work on the same
cores add little to it.
"""

from __future__ import annotations

import os
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

REPOSITORY = Path(__file__).resolve().parent.parent
HEAD = (
    "| what | runs | first s | median s | min s | max s | median CPU s "
    "| min CPU s | limit CPU s | peak MiB | limit MiB |\n|" + "---|" * 11
)


@dataclass(frozen=True)
class Run:
    """The wall time, CPU time and peak resident set of one process."""

    seconds: float
    cpu: float
    mib: float


@dataclass(frozen=True)
class Measured:
    """The runs of one command, and its limits.

    The least CPU time of the runs and the largest peak must be within them.
    """

    what: str
    runs: Sequence[Run]
    limit_seconds: float
    limit_mib: float

    @property
    def median(self) -> float:
        """Return the median of the wall times."""
        return statistics.median(run.seconds for run in self.runs)

    @property
    def cpu(self) -> float:
        """Return the least CPU time of a run."""
        return min(run.cpu for run in self.runs)

    @property
    def peak(self) -> float:
        """Return the largest resident set of any run."""
        return max(run.mib for run in self.runs)

    @property
    def within(self) -> bool:
        """Return whether both limits are kept."""
        return self.cpu <= self.limit_seconds and self.peak <= self.limit_mib

    def row(self) -> str:
        """Return the line of the table."""
        seconds = [run.seconds for run in self.runs]
        cpu = [run.cpu for run in self.runs]
        return (
            f"| {self.what} | {len(seconds)} | {seconds[0]:.3f} | {self.median:.3f} "
            f"| {min(seconds):.3f} | {max(seconds):.3f} "
            f"| {statistics.median(cpu):.3f} | {self.cpu:.3f} | {self.limit_seconds:.2f} "
            f"| {self.peak:.1f} | {self.limit_mib:.0f} |"
        )


def python(*arguments: str) -> list[str]:
    """Return the command that runs a module of this package."""
    return [sys.executable, "-m", *arguments]


def shown(command: Sequence[str]) -> str:
    """Return the command as a person would type it in the repository."""
    return f"$ {shlex.join(['python', *command[1:]])}"


def run_once(command: Sequence[str], status_wanted: int = 0) -> Run:
    """Run a command in an interpreter of its own; it must end with a status."""
    quiet = subprocess.DEVNULL
    start = time.perf_counter()
    with TemporaryFile() as errors:
        process = subprocess.Popen(
            command, cwd=REPOSITORY, stdout=quiet, stderr=errors, env=_environment()
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != status_wanted:
            errors.seek(0)
            last = errors.read().decode("utf-8", "replace").splitlines()[-3:]
            what = f"exit status {process.returncode}: {shlex.join(command)}"
            raise SystemExit("\n".join([what, *last]))
    # Linux counts ru_maxrss in KiB, macOS in bytes.
    unit = 1024 if sys.platform != "darwin" else 1024 * 1024
    cpu = usage.ru_utime + usage.ru_stime
    return Run(seconds, cpu, usage.ru_maxrss / unit)


def _environment() -> dict[str, str]:
    """Return this process's environment, but processes keep the bytecode they compile."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def measure(
    what: str,
    command: Sequence[str],
    runs: int,
    *,
    limit_seconds: float,
    limit_mib: float,
    before: Callable[[], None] = lambda: None,
) -> Measured:
    """Run a command several times, after `before` each time, which is not measured."""
    done = []
    for _ in range(runs):
        before()
        done.append(run_once(command))
    return Measured(what, done, limit_seconds, limit_mib)


def report(commands: Sequence[Sequence[str]], measured: Sequence[Measured]) -> int:
    """Print the commands and the table; return 1 where a limit is broken."""
    print("\n".join(dict.fromkeys(shown(command) for command in commands)))
    print(HEAD)
    print("\n".join(m.row() for m in measured))
    return 0 if all(m.within for m in measured) else 1
