"""Time `trace-dataset validate` as whole processes and print a table.

    python benchmarks/bench_validate.py [--dataset DIR] [--runs N]

Every run starts an interpreter of its own; peak memory is the largest resident set of
any run, as the operating system reports it for that process.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
LIMIT_SECONDS = 0.5


def time_run(command: list[str]) -> tuple[float, float]:
    """Run a command; return its wall time in seconds and its peak memory in MiB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"exit status {process.returncode}: {shlex.join(command)}")
    # Linux counts ru_maxrss in KiB, macOS in bytes.
    unit = 1024 if sys.platform != "darwin" else 1024 * 1024
    return seconds, usage.ru_maxrss / unit


def main() -> int:
    """Print the table; the exit status says whether the median is within the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default=str(REPOSITORY))
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    command = [sys.executable, "-m", "generator.cli.trace_dataset", "validate"]
    command += ["--dataset", options.dataset]
    runs = [time_run(command) for _ in range(options.runs)]
    seconds = [run[0] for run in runs]
    median = statistics.median(seconds)
    print(f"$ {shlex.join(['python', *command[1:]])}")
    print("| runs | first s | median s | min s | max s | peak MiB | limit s |")
    print("|---|---|---|---|---|---|---|")
    print(
        f"| {len(runs)} | {seconds[0]:.3f} | {median:.3f} | {min(seconds):.3f} "
        f"| {max(seconds):.3f} | {max(run[1] for run in runs):.1f} "
        f"| {LIMIT_SECONDS:.1f} |"
    )
    return 0 if median <= LIMIT_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
