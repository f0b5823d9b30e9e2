"""Time `gen-tests --all` as whole processes and print a table.

    python benchmarks/bench_gen_tests.py [--dataset DIR] [--runs N]

Cold is into an empty folder, with the package's bytecode compiled; unchanged is once
more into a folder that is up to date. The exit status is 1 where a median or a peak is
over its limit.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from measure import REPOSITORY, measure, python, report

COLD_SECONDS = 1.5
UNCHANGED_SECONDS = 0.5
LIMIT_MIB = 150


def main() -> int:
    """Print the table; the exit status says whether all is within the limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default=str(REPOSITORY))
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "references"
        command = python("generator.cli.gen_tests", "--all")
        command += ["--dataset", options.dataset, "--output", str(output)]
        cold = measure(
            "cold",
            command,
            options.runs,
            limit_seconds=COLD_SECONDS,
            limit_mib=LIMIT_MIB,
            before=lambda: shutil.rmtree(output, ignore_errors=True),
        )
        unchanged = measure(
            "unchanged",
            command,
            options.runs,
            limit_seconds=UNCHANGED_SECONDS,
            limit_mib=LIMIT_MIB,
        )
        check = measure(
            "check",
            [*command, "--check"],
            options.runs,
            limit_seconds=UNCHANGED_SECONDS,
            limit_mib=LIMIT_MIB,
        )
    return report([command, [*command, "--check"]], [cold, unchanged, check])


if __name__ == "__main__":
    sys.exit(main())
