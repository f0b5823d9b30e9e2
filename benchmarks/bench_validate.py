"""Time `trace-dataset validate` as whole processes and print a table.

    python benchmarks/bench_validate.py [--dataset DIR] [--runs N]
    python benchmarks/bench_validate.py --scale 1000,10000,100000 [--folder DIR]

The first form validates a dataset without and with a cache, the second makes large
ones (20 workloads each, see big_dataset.py) and validates each once. The exit status is
1 where a median is over its limit.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from big_dataset import make
from measure import REPOSITORY, Measured, measure, python, report

LIMIT_SECONDS = 0.5
LIMIT_CACHED_SECONDS = 0.2
LIMIT_MIB = 120
WORKLOADS = 20
SECONDS_PER_DEFINITION = 25 / 10_000
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
    with tempfile.TemporaryDirectory() as cache:
        # not the user's: the first cached run has to fill an empty one
        os.environ["XDG_CACHE_HOME"] = cache
        if options.scale is None:
            return one(options.dataset, options.runs)
        return scale([int(n) for n in options.scale.split(",")], options.folder)


def one(dataset: str, runs: int) -> int:
    """Time one dataset, cold and cached."""
    cached = [*python("generator.cli.trace_dataset", "validate"), "--dataset", dataset]
    cold = [*cached, "--no-cache"]
    limits = {"limit_mib": LIMIT_MIB}
    rows = [measure("cold", cold, runs, limit_seconds=LIMIT_SECONDS, **limits)]
    measure("fill the cache", cached, 1, limit_seconds=LIMIT_SECONDS, **limits)
    rows.append(
        measure("cached", cached, runs, limit_seconds=LIMIT_CACHED_SECONDS, **limits)
    )
    return report([cold, cached], rows)


def scale(sizes: list[int], folder: Path | None) -> int:
    """Time datasets of several sizes, once each; the peak is of the largest process."""
    rows: list[Measured] = []
    commands = []
    for size in sizes:
        root = Path(tempfile.mkdtemp()) if folder is None else folder / str(size)
        try:
            if not (root / "definitions").exists():
                make(root, size, WORKLOADS)
            command = python("generator.cli.trace_dataset", "validate", "--no-cache")
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
