"""How long `trace-dataset evaluate` takes for many small solutions on the CPU.

`python benchmarks/bench_evaluate.py [COUNT]` evaluates COUNT copies of an honest solution
of rmsnorm_h4096, 100 if not given, with two jobs. It prints wall and CPU seconds, in all
and for a solution; on a busy machine the CPU seconds are those to believe.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
_EXAMPLE = "solutions/examples/rmsnorm/rmsnorm_h4096/rmsnorm_h4096_torch.json"
_COMMAND = "-m generator.cli.trace_dataset evaluate --workloads cases --jobs 2"


def main() -> int:
    """Print the figures; return 1 where a copy does not pass."""
    count = int(sys.argv[1]) if sys.argv[1:] else 100
    value = json.loads((ROOT / _EXAMPLE).read_text("utf-8"))
    with TemporaryDirectory() as name:
        files = []
        for number in range(count):
            file = Path(name, f"{number:03}.json")
            file.write_text(json.dumps({**value, "name": f"copy_{number}"}), "utf-8")
            files.append(str(file))
        begun = time.monotonic()
        command = [sys.executable, *_COMMAND.split(), *files]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
        wall = time.monotonic() - begun
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    print(f"{count} solutions: {wall:.1f} s wall, {cpu:.1f} s CPU")
    print(f"a solution: {wall / count:.2f} s wall, {cpu / count:.2f} s CPU")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
