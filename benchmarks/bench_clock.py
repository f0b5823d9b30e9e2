"""How equal equal work is to the clock: cuBLAS, a FlashInfer norm and a Triton kernel as solutions.

    python benchmarks/bench_clock.py [--repeats 3]

Needs a GPU. A line for each solution and workload: its time, its share of the light, and its
speedup over the same kernel as the production kernel, in each repeat. Of the Triton kernel,
which is no production kernel, the second speedup is divided by the first.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from tests.functional.clock_lies import HONEST, RETURNS
from tests.functional.test_clock_cuda import (
    FLASHINFER,
    NORM,
    TRITON,
    solution,
    timed,
)

_GEMM_SIZES = (8, 64, 256, 1024, 2379, 8192)
_NORM_SIZES = (256, 4096, 11832)


def main() -> None:
    """Time each solution as often as is asked, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    triton = json.loads(TRITON.read_text())
    tasks = (
        (
            _GEMM_SIZES,
            [solution("filled", HONEST), solution("returned", RETURNS, False)],
        ),
        (
            _NORM_SIZES,
            [
                solution("flashinfer", FLASHINFER, definition=NORM),
                {**triton, "name": "triton"},
                {**triton, "name": "triton again"},
            ],
        ),
    )
    for repeat in range(repeats):
        for sizes, values in tasks:
            with tempfile.TemporaryDirectory() as folder:
                verdicts = timed(Path(folder), sizes, *values)
            _print(repeat, verdicts)


def _print(repeat: int, verdicts: dict[str, Any]) -> None:
    """Print a line for each workload of each solution; its name ends with the size."""
    for name, verdict in verdicts.items():
        if verdict["verdict"] != "PASSED":
            print(repeat, name, verdict["verdict"], verdict["reason"], flush=True)
        for case in verdict["cases"]:
            timing = case["timing"]
            if not timing:
                continue
            speedup = timing.get("speedup_over_production")
            light = timing.get("fraction_of_light")
            latency = timing.get("latency_ms")
            print(
                f"{repeat} {name:14} {case['case'][-6:]} {latency} ms, of light {light}, "
                f"over production {speedup}, {timing['iterations']} calls",
                flush=True,
            )


if __name__ == "__main__":
    main()
