"""Time `trace-dataset validate` as whole processes and print a table.

    python benchmarks/bench_validate.py [--dataset DIR] [--runs N]

The exit status is 1 where the median is over its limit.
"""

from __future__ import annotations

import argparse
import sys

from measure import REPOSITORY, measure, python, report

LIMIT_SECONDS = 0.5
LIMIT_MIB = 120


def main() -> int:
    """Print the table; the exit status says whether all is within the limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default=str(REPOSITORY))
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    command = python("generator.cli.trace_dataset", "validate")
    command += ["--dataset", options.dataset]
    measured = measure(
        "validate",
        command,
        options.runs,
        limit_seconds=LIMIT_SECONDS,
        limit_mib=LIMIT_MIB,
    )
    return report([command], [measured])


if __name__ == "__main__":
    sys.exit(main())
