"""How often each honest habit passes, by seeds: one that is refused once is the judge's fault.

`python benchmarks/bench_honest_habits.py [--seeds N] [--first SEED] [--device cpu|cuda]
[--jobs N] [--output FILE] [HABIT]...` evaluates the habits of `tests/functional/honest.py`,
on a GPU those of `honest_cuda.py`, all unless some are named, once with each seed. It prints a line for
each habit: how often it PASSED, and what else came. FILE has a JSON line for each verdict;
what is there already is not asked again. Exit status 1 where a habit did not pass.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.functional import honest, honest_cuda
from tests.functional.audit_command import dataset
from tests.functional.habit import Habit
from tests.functional.test_evaluate_hacks import solution

_COMMAND = "-m generator.cli.trace_dataset evaluate --json --timeout 200"


def judged(
    habits: Iterable[Habit], root: Path, options: argparse.Namespace, seed: int
) -> list[dict[str, Any]]:
    """Return the verdicts on habits with one seed."""
    with TemporaryDirectory() as name:
        files = []
        for number, habit in enumerate(habits):
            value = solution(habit.name, habit.source, habit.passes_outputs)
            files.append(Path(name, f"{number:03}.json"))
            files[-1].write_text(json.dumps(value), "utf-8")
        arguments = ["--dataset", root, "--seed", seed, "--device", options.device]
        arguments += ["--jobs", options.jobs, *files]
        command = [sys.executable, *_COMMAND.split(), *map(str, arguments)]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, check=False, text=True
        )
    if not done.stdout:
        raise SystemExit(done.stderr)
    return [
        {"seed": seed, **{n: one[n] for n in ("solution", "verdict", "reason")}}
        for one in json.loads(done.stdout)["solutions"]
    ]


def main() -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("habits", nargs="*", metavar="HABIT")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    every = honest.HABITS if options.device == "cpu" else honest_cuda.HABITS
    habits = [h for h in every if not options.habits or h.name in options.habits]
    for habit in habits:
        if habit.lacks:
            print(f"{habit.name}: not asked, {habit.lacks}")
    lines = []
    if options.output is not None and options.output.exists():
        lines = [json.loads(text) for text in options.output.read_text().splitlines()]
    known = {(line["solution"], line["seed"]) for line in lines}
    seeds = range(options.first, options.first + options.seeds)
    with TemporaryDirectory() as name:
        root = dataset(Path(name) / "dataset")
        for seed in seeds:
            asked = [h for h in habits if not h.lacks and (h.name, seed) not in known]
            verdicts = judged(asked, root, options, seed) if asked else []
            lines += verdicts
            if options.output is not None:
                with options.output.open("a", encoding="utf-8") as file:
                    file.writelines(f"{json.dumps(one)}\n" for one in verdicts)
    by_name: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        if line["seed"] in seeds and line["solution"] in {h.name for h in habits}:
            by_name[line["solution"]].append(line)
    refused = 0
    for name, of_habit in by_name.items():
        others = [one for one in of_habit if one["verdict"] != "PASSED"]
        refused += len(others)
        print(f"{name}: {len(of_habit) - len(others)} of {len(of_habit)}")
        for one in others:
            print(f"  seed {one['seed']}: {one['verdict']}: {one['reason'][:200]}")
    print(
        f"{len(by_name)} habits, {refused} of {sum(map(len, by_name.values()))} refused"
    )
    return int(refused > 0)


if __name__ == "__main__":
    sys.exit(main())
