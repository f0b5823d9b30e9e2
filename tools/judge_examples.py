"""Run the examples of docs/judge.md: alarms of right kernels, and defects that pass.

    python tools/judge_examples.py [--seeds 10000] [NAME …]

Each example has `right(seed)`, what a right kernel returns and what is expected,
`wrong`, kernels with a defect by name, `theirs`, the bound of the thread, and `ours`.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import torch

from kernel_judge import compare

FOLDER = Path(__file__).parent.parent / "docs" / "judge"
Pair = tuple[torch.Tensor, torch.Tensor]


def examples() -> dict[str, ModuleType]:
    """Return the examples by name."""
    found = {}
    for file in sorted(FOLDER.glob("*.py")):
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        found[file.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found[file.stem])
    return found


def passes(example: ModuleType, pair: Pair) -> tuple[bool, bool]:
    """Return whether an output passes the thread's bound, and ours."""
    actual, expected = pair
    scale = float(expected.double().square().mean().sqrt())
    ours = example.ours(actual.numel(), scale)
    return example.theirs(actual, expected), compare(actual, expected, ours).passed


def passed(
    example: ModuleType, kernel: Callable[[int], Pair], seeds: int
) -> tuple[int, int]:
    """Return in how many seeds a kernel passes the thread's bound, and ours."""
    outcomes = [passes(example, kernel(seed)) for seed in range(seeds)]
    return sum(theirs for theirs, _ in outcomes), sum(ours for _, ours in outcomes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=200)
    chosen = parser.parse_args()
    for name, example in examples().items():
        if chosen.names and name not in chosen.names:
            continue
        seeds = chosen.seeds
        theirs, ours = passed(example, example.right, seeds)
        print(f"{name}: {seeds - theirs} and {seeds - ours} alarms in {seeds} seeds")
        wrong: Mapping[str, Callable[[int], Pair]] = example.wrong
        for defect, kernel in wrong.items():
            theirs, ours = passed(example, kernel, 100)
            print(f"  {defect}: passes {theirs} and {ours} of 100")


if __name__ == "__main__":
    main()
