"""Time `trace-dataset review` of a change of one definition, or of many, as processes.

    python benchmarks/bench_review.py [--runs N] [--definition NAME]
    python benchmarks/bench_review.py --many 500 [--runs N]

The dataset is cloned into a temporary folder. One constant of one definition's
reference is changed, and what it changes is executed too, once; with --many, that many references get a line, and their tests are not
rendered again. The exit status is 1 where CPU time or memory is over its limit.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import REPOSITORY, Measured, Run, report, run_once

LIMIT_SECONDS = 1.0
LIMIT_SECONDS_EXECUTED = 12.0
LIMIT_SECONDS_MANY = 12.0
LIMIT_MIB = 120
# changes are needed: that is the answer to this change
EXPECTED = 1


def main() -> int:
    """Print the table; the exit status says whether all is within the limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--definition", default="rmsnorm/rmsnorm_h4096")
    parser.add_argument("--many", type=int, default=0)
    options = parser.parse_args()
    if options.many:
        return many(options.many, options.runs)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "dataset")
        clone(folder, options.definition)
        command = [sys.executable, "-m", "generator.cli.trace_dataset", "review"]
        command += ["--dataset", str(folder)]
        commit = [*command, "--base", "HEAD~1", "--head", "HEAD"]
        cases = [
            ("working tree", command, options.runs),
        ]
        measured = [timed(*case, LIMIT_SECONDS) for case in cases]
        git(folder, "commit", "-q", "-a", "-m", "change")
        measured.append(timed("two revisions", commit, options.runs, LIMIT_SECONDS))
        executed = [*commit, "--execute"]
        measured.append(timed("executed", executed, 1, LIMIT_SECONDS_EXECUTED, 1024))
        return report([c for _, c, _ in cases] + [commit, executed], measured)


def many(count: int, runs: int) -> int:
    """Time a change of many references, drawn from all definitions."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "dataset")
        git(REPOSITORY, "clone", "-q", "--no-hardlinks", str(REPOSITORY), str(folder))
        files = sorted(folder.glob("definitions/*/*.json"))
        for file in random.Random(1).sample(files, count):
            value = json.loads(file.read_text("utf-8"))
            value["reference"] += "\n\nUNUSED = 0\n"
            file.write_text(json.dumps(value, indent=2) + "\n", "utf-8")
        git(folder, "commit", "-q", "-a", "-m", "change")
        command = [sys.executable, "-m", "generator.cli.trace_dataset", "review"]
        command += ["--dataset", str(folder), "--base", "HEAD~1", "--head", "HEAD"]
        what = f"{count} references"
        return report([command], [timed(what, command, runs, LIMIT_SECONDS_MANY)])


def clone(folder: Path, definition: str) -> None:
    """Copy what is committed here, and change one definition of it."""
    git(REPOSITORY, "clone", "-q", "--no-hardlinks", str(REPOSITORY), str(folder))
    file = folder / "definitions" / f"{definition}.json"
    text = file.read_text("utf-8")
    changed = text.replace("1e-05", "1e-06")
    if changed == text:
        shutil.rmtree(folder)
        raise SystemExit(f"{definition} has no 1e-05 to be changed")
    file.write_text(changed, "utf-8")


def git(folder: Path, *arguments: str) -> None:
    """Run git; raises CalledProcessError."""
    who = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"]
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True)


def timed(
    what: str, command: list[str], runs: int, limit: float, mib: float = LIMIT_MIB
) -> Measured:
    """Run a review several times, each in an interpreter of its own."""
    done: list[Run] = [run_once(command, EXPECTED) for _ in range(runs)]
    return Measured(what, done, limit, mib)


if __name__ == "__main__":
    sys.exit(main())
