"""Judge honest draws by the laws of samplers: how often is one refused?

`python benchmarks/bench_honest_samplers.py [--runs N] [--jobs N]`: a run is all cases of one
definition, its small and medium ones and those that only solutions are asked, each with
draws of its laws by a 53-bit generator. Nothing is called: the statistics alone are
simulated, on a vocabulary of 9,216 tokens. Exit status 1 where a run is refused.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from generator.evaluation.rounds import rounds_of
from generator.ops.op_types.sampling.distribution import verdict
from generator.ops.op_types.sampling.law import Law, Laws, laws_of
from generator.rules.load import load_definitions

_VOCABULARY = 9216


def tables(name: str) -> list[tuple[str, Laws, int]]:
    """Return the laws of each case of a definition, and how many calls it takes."""
    (definition,) = load_definitions(Path(), names=[name]).definitions
    asked = rounds_of(
        definition,
        [],
        Path(),
        torch.device("cpu"),
        1,
        axes={"vocab_size": _VOCABULARY},
    )
    return [(case, laws_of(r[0].inputs), r[0].calls()) for case, r in asked.rounds]


def drawn(law: Law, size: tuple[int, int], draw: torch.Generator) -> torch.Tensor:
    """Return draws of a law, int64 [calls, rows]; of its free tokens some."""
    low, high = law.free_share
    share = (low + high) / 2.0
    if len(law.tokens):
        sums = (law.weights / law.weights.sum()).cumsum(0)
        u = torch.rand(size, dtype=torch.float64, generator=draw)
        place = torch.searchsorted(sums, u, right=True).clamp_max(len(sums) - 1)
        found = law.tokens[place]
    else:
        found, share = torch.empty(size, dtype=torch.int64), 1.0
    if len(law.free):
        any_free = law.free[torch.randint(len(law.free), size, generator=draw)]
        is_free = torch.rand(size, dtype=torch.float64, generator=draw) < share
        found = torch.where(is_free, any_free, found)
    return found


def refusals(name: str, runs: int, seed: int) -> list[str]:
    """Return the findings of honest runs of one definition."""
    torch.set_num_threads(1)
    draw = torch.Generator().manual_seed(seed)
    cases: Sequence[Any] = tables(name)
    found = []
    for number in range(runs):
        for case, laws, calls in cases:
            rows = laws.row_law.bincount(minlength=len(laws.laws)).tolist()
            table = [
                drawn(law, (calls, count), draw)
                for law, count in zip(laws.laws, rows, strict=True)
            ]
            every = torch.ones(len(laws.row_law), dtype=torch.bool)
            result = verdict([], {"actual": table}, laws, every)
            if not result.passed:
                found.append(f"{name} {seed} {number} {case}: {result.findings}")
    return found


def main() -> int:
    """Print the refusals; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    names = [
        "sampling_from_probs_v128256",
        "top_k_sampling_from_probs_v128256",
        "top_p_sampling_from_probs_v128256",
        "top_k_top_p_sampling_from_probs_v128256",
        "min_p_sampling_v128256",
    ]
    part = -(-given.runs // (len(names) * given.jobs))
    tasks = [(name, part, job) for job in range(given.jobs) for name in names]
    with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
        found = [line for lines in pool.starmap(refusals, tasks) for line in lines]
    print("\n".join(found))
    print(f"{part * len(tasks)} honest runs, {len(found)} refused")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
