"""Time `trace-dataset push` and `pull` of all to and from a Hub on the loopback device.

    python benchmarks/bench_push.py [--runs N]

A whole process pushes everything as one pull request to an empty repository, then again
with nothing new; a third one pulls it all into an empty folder. What is pushed need not
have evidence: that is the dataset's affair, not the push's. The server is a process of
its own, whose CPU time is not counted. The exit status is 1 where CPU time, a peak or a
number of commits is not what it must be. The limits are of a definition: each is read,
judged and rendered before a push says that there is nothing new.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import REPOSITORY, Measured, Run, python, report, run_once

sys.path.insert(0, str(REPOSITORY))

from tests.hub.server import Hub

REPO = "lab/kernels"
PUSH_SECONDS, AGAIN_SECONDS, PULL_SECONDS, LIMIT_MIB = 0.0125, 0.007, 0.018, 0.2
PUSH = python("generator.cli.trace_dataset", "push", "--repo", REPO)
PUSH += ["--all", "--together", "--yes", "--allow", "evidence-missing=a measurement"]
PUSH += ["--allow", "evidence-failed=a measurement"]
PULL = python("generator.cli.trace_dataset", "pull", "--repo", REPO, "--pr", "1")
PULL += ["--all", "--blobs", "all"]


def main() -> int:
    """Print the table; the exit status says whether all is within the limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        return serve(options.serve)
    pushes: list[Run] = []
    repeats: list[Run] = []
    pulls: list[Run] = []
    wrong = 0
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory() as folder:
            wrong += not once(Path(folder), pushes, repeats, pulls)
    count = sum(1 for _ in (REPOSITORY / "definitions").glob("*/*.json"))
    done = [
        Measured(what, runs, count * seconds, count * LIMIT_MIB)
        for what, runs, seconds in (
            ("push of all", pushes, PUSH_SECONDS),
            ("nothing new", repeats, AGAIN_SECONDS),
            ("pull of all", pulls, PULL_SECONDS),
        )
    ]
    failed = report([PUSH, PULL], done)
    print(f"runs with other than one commit, then none: {wrong}")
    return int(bool(failed or wrong))


def once(folder: Path, pushes: list[Run], repeats: list[Run], pulls: list[Run]) -> bool:
    """Push twice to a new server and pull; return whether there was one commit only."""
    command = [sys.executable, __file__, "--serve", str(folder)]
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        for line in iter(server.stdout.readline, "\n"):
            name, _, value = line.rstrip("\n").partition("=")
            os.environ[name] = value
        pushes.append(run_once(PUSH))
        first = commits(server)
        repeats.append(run_once(PUSH))
        pulls.append(run_once([*PULL, "--dataset", str(folder / "pulled")]))
        return first == 1 and commits(server) == 1
    finally:
        server.stdin.close()
        server.wait()


def commits(server: subprocess.Popen[str]) -> int:
    """Ask the server how many commits pull requests have, without the first one's."""
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write("commits\n")
    server.stdin.flush()
    return int(server.stdout.readline())


def serve(folder: Path) -> int:
    """Serve until stdin ends; print the environment, then an answer to each line."""
    with Hub(folder) as hub:
        repository = hub.add_repository(REPO)
        for name, value in hub.environment().items():
            print(f"{name}={value}")
        print(flush=True)
        for _ in sys.stdin:
            refs = [ref for ref in repository.refs() if ref.startswith("refs/pr/")]
            print(sum(len(repository.history(ref)) - 1 for ref in refs), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
