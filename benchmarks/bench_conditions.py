"""What conditions cost: `trace-dataset evaluate` with `--as` against the same without.

    python benchmarks/bench_conditions.py [--device cpu|cuda] [--repeats N] [EXAMPLE ...]

Each example is evaluated by a command of its own, with and without conditions in turn. It
prints seconds of both and their ratio, and the ratio of all together; conditions that were
not asked or did not hold are named, since those cost another time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_CONDITIONS = "graph,stream,strided,batch"
_EXAMPLES = {
    "cpu": ("rmsnorm_h4096_torch", "gqa_paged_decode_h32_kv8_d128_ps1_torch"),
    "cuda": (
        "rmsnorm_h4096_torch",
        "rmsnorm_h4096_triton",
        "silu_and_mul_i14336_triton",
        "gqa_paged_decode_h32_kv8_d128_ps64_triton",
    ),
}


def evaluated(example: Path, options: list[str]) -> tuple[float, dict[str, Any]]:
    """Return the seconds of a command and what came of the solution.

    Raises SystemExit where it does not pass.
    """
    with TemporaryDirectory() as folder:
        begun = time.monotonic()
        command = [sys.executable, "-m", "generator.cli.trace_dataset", "evaluate"]
        command += [str(example), *options, "--output", folder]
        ran = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False
        )
        seconds = time.monotonic() - begun
        results = Path(folder, "results.json")
        if not results.exists():
            raise SystemExit(f"{example.stem}: {ran.stderr or ran.stdout}")
        (found,) = json.loads(results.read_text("utf-8"))["solutions"]
    if found["verdict"] != "PASSED":
        raise SystemExit(f"{example.stem}: {found['verdict']} {found['reason']}")
    return seconds, found


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("examples", nargs="*", metavar="EXAMPLE")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--workloads", default="cases")
    options = parser.parse_args()
    usual = ["--device", options.device, "--workloads", options.workloads]
    usual += ["--jobs", "1", "--timeout", "200"]
    total = [0.0, 0.0]
    for name in options.examples or _EXAMPLES[options.device]:
        (example,) = (ROOT / "solutions/examples").rglob(f"{name}.json")
        times: list[list[float]] = [[], []]
        found: dict[str, Any] = {}
        for _ in range(options.repeats):
            for number, more in enumerate(([], ["--as", _CONDITIONS])):
                seconds, found = evaluated(example, [*usual, *more])
                times[number].append(seconds)
        plain, asked = median(times[0]), median(times[1])
        total[0] += plain
        total[1] += asked
        other = [
            f"{condition} {one['verdict']}"
            for condition, one in found["conditions"].items()
            if one["verdict"] != "holds"
        ]
        print(
            f"{name}: {plain:.1f} s, with conditions {asked:.1f} s, "
            f"{asked / plain:.2f} times; {', '.join(other) or 'all hold'}",
            flush=True,
        )
    print(f"together {total[1] / total[0]:.2f} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
