"""Time `gen-tests --all` as whole processes and print a table.

    python benchmarks/bench_gen_tests.py [--dataset DIR] [--runs N]

Of 156 definitions drawn from a dataset, and of the whole of it, whose limit is the other's
for each definition. Cold is into an empty folder, with the package's bytecode compiled;
unchanged is once more into a folder that is up to date, and may take what cold does in the
same run. The exit status is 1 where CPU time or a peak is over its limit.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

from measure import REPOSITORY, Measured, measure, python, report

FEW, FEW_SECONDS = 156, 0.65
AGAIN = 1.1
"""Time of a run that changes nothing, as a multiple of the cold one's."""
LIMIT_MIB = 150


def main() -> int:
    """Print the table; the exit status says whether all is within the limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", type=Path, default=REPOSITORY)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    files = sorted(options.dataset.glob("definitions/*/*.json"))
    with tempfile.TemporaryDirectory() as name:
        few = Path(name, "few")
        for file in random.Random(1).sample(files, min(FEW, len(files))):
            copy = few / file.relative_to(options.dataset)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
        output = Path(name, "references")
        commands, rows = [], []
        for dataset, count in (
            (few, min(FEW, len(files))),
            (options.dataset, len(files)),
        ):
            command = python("generator.cli.gen_tests", "--all")
            command += ["--dataset", str(dataset), "--output", str(output)]
            commands += [command, [*command, "--check"]]
            rows += measured(command, output, count, options.runs)
    return report(commands, rows)


def measured(command: list[str], output: Path, count: int, runs: int) -> list[Measured]:
    """Time the rendering of that many definitions: cold, again, and as a check."""
    cold = measure(
        f"{count} cold",
        command,
        runs,
        limit_seconds=FEW_SECONDS * max(count / FEW, 1.0),
        limit_mib=LIMIT_MIB,
        before=lambda: shutil.rmtree(output, ignore_errors=True),
    )
    again = {"limit_seconds": AGAIN * cold.cpu, "limit_mib": LIMIT_MIB}
    unchanged = measure(f"{count} unchanged", command, runs, **again)
    return [
        cold,
        unchanged,
        measure(f"{count} check", [*command, "--check"], runs, **again),
    ]


if __name__ == "__main__":
    sys.exit(main())
