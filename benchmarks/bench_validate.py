"""Time `trace-dataset validate` as whole processes and print a table.

    python benchmarks/bench_validate.py [--dataset DIR] [--runs N]
    python benchmarks/bench_validate.py --scale 1000,10000,100000 [--folder DIR]

The first form validates a dataset, the second makes large
ones (20 workloads each, see big_dataset.py) and validates each once. The exit status is
1 where CPU time or memory is over its limit.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from big_dataset import make
from measure import REPOSITORY, Measured, measure, python, report

# 0.8 s on two cores
LIMIT_SECONDS = 1.6
LIMIT_MIB = 60
WORKLOADS = 20
# 30 s for 10,000 on two cores
SECONDS_PER_DEFINITION = 60 / 10_000
LIMIT_MIB_LARGE = 300


def main() -> int:
    """Print the table; the exit status says whether all is within the limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default=str(REPOSITORY))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--scale", help="numbers of definitions, separated by commas")
    parser.add_argument(
        "--folder", type=Path, help="where large datasets are made, and kept"
    )
    options = parser.parse_args()
    if options.scale is None:
        return one(options.dataset, options.runs)
    return scale([int(n) for n in options.scale.split(",")], options.folder)


def one(dataset: str, runs: int) -> int:
    """Time one dataset."""
    command = python("generator.cli.trace_dataset", "validate", "--dataset", dataset)
    limits = {"limit_seconds": LIMIT_SECONDS, "limit_mib": LIMIT_MIB}
    return report([command], [measure("one dataset", command, runs, **limits)])


def scale(sizes: list[int], folder: Path | None) -> int:
    """Time datasets of several sizes, once each; the peak is of the largest process."""
    rows: list[Measured] = []
    commands = []
    for size in sizes:
        root = Path(tempfile.mkdtemp()) if folder is None else folder / str(size)
        try:
            if not (root / "definitions").exists():
                make(root, size, WORKLOADS)
            command = python("generator.cli.trace_dataset", "validate")
            command += ["--dataset", str(root)]
            commands.append(command)
            rows.append(
                measure(
                    f"{size:,} definitions, {size * WORKLOADS:,} workloads",
                    command,
                    1,
                    limit_seconds=size * SECONDS_PER_DEFINITION,
                    limit_mib=LIMIT_MIB_LARGE,
                )
            )
        finally:
            if folder is None:
                shutil.rmtree(root)
    return report(commands, rows)


if __name__ == "__main__":
    sys.exit(main())
