"""Time the reference tests as one process, without xdist, and print a table.

    python benchmarks/bench_references.py [--device cpu|cuda] [--runs N]

Small and medium cases, as rendered. On a CUDA device run it twice: the first run
compiles FlashInfer's kernels. The exit status is 1 where a limit is broken.
"""

from __future__ import annotations

import argparse
import sys

from measure import measure, python, report

# device → the limits of time in seconds and of memory in MiB
LIMITS = {"cpu": (240.0, 8192.0), "cuda": (60.0, 16384.0)}


def main() -> int:
    """Print the table; the exit status says whether all is within the limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=sorted(LIMITS), default="cpu")
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()
    seconds, mib = LIMITS[options.device]
    command = python("pytest", "-q", "tests/references", "--device", options.device)
    measured = measure(
        options.device,
        command,
        options.runs,
        limit_seconds=seconds,
        limit_mib=mib,
    )
    return report([command], [measured])


if __name__ == "__main__":
    sys.exit(main())
