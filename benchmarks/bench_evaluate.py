"""How long `trace-dataset evaluate` takes for many small solutions, and for a sampler.

`python benchmarks/bench_evaluate.py [COUNT] [--example NAME] [--device cpu|cuda] [--jobs N]`
evaluates one copy of an honest example and then COUNT of them, 100 of rmsnorm_h4096_torch
unless said otherwise. It prints wall and CPU seconds of both, what a further solution
takes, and how many there are in a minute; on a busy machine the CPU seconds are those to
believe.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
_COMMAND = "-m generator.cli.trace_dataset evaluate --workloads cases"


def taken(example: Path, count: int, options: list[str]) -> tuple[float, float]:
    """Return wall and CPU seconds of evaluating `count` copies of an example.

    Raises CalledProcessError where one does not pass.
    """
    value = json.loads(example.read_text("utf-8"))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with TemporaryDirectory() as name:
        files = []
        for number in range(count):
            file = Path(name, f"{number:03}.json")
            file.write_text(json.dumps({**value, "name": f"copy_{number}"}), "utf-8")
            files.append(str(file))
        begun = time.monotonic()
        command = [sys.executable, *_COMMAND.split(), *options, *files]
        subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        wall = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user = after.ru_utime - before.ru_utime
    return wall, user + after.ru_stime - before.ru_stime


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=100)
    parser.add_argument("--example", default="rmsnorm_h4096_torch")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    (example,) = (ROOT / "solutions/examples").rglob(f"{options.example}.json")
    chosen = ["--device", options.device, "--jobs", str(options.jobs)]
    first = taken(example, 1, chosen)
    print(f"1 solution: {first[0]:.1f} s wall, {first[1]:.1f} s CPU")
    if options.count > 1:
        wall, cpu = taken(example, options.count, chosen)
        further = [
            (a - b) / (options.count - 1)
            for a, b in zip((wall, cpu), first, strict=True)
        ]
        print(f"{options.count} solutions: {wall:.1f} s wall, {cpu:.1f} s CPU")
        print(f"a further solution: {further[0]:.2f} s wall, {further[1]:.2f} s CPU")
        print(f"{60.0 * options.count / wall:.0f} a minute")
    return 0


if __name__ == "__main__":
    sys.exit(main())
