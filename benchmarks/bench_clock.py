"""How equal equal work is to the clock: cuBLAS, a FlashInfer norm and a Triton kernel as solutions.

    python benchmarks/bench_clock.py [--repeats 3] [--starts 1] [--what norms,gemm,lies]

Needs a GPU. A line for each solution and workload as soon as its group is timed: its time, its share
of the light, and its speedup over the production kernel, in each repeat. Of the Triton kernel,
which is no production kernel, the second speedup is divided by the first. `lies` are the
solutions of tests/functional/test_clock_cuda.py, between two honest ones; `--named` chooses some of them by
words of their names, `--group` says how many are timed by one process. `long` are those of 1.3 ms, `cpu` is the one that needs no GPU.
`--only` names the solutions of the others that are timed.
With `--starts` a figure is that of several starts, and each start has a line of its own.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from generator import api
from generator.evaluation.evaluate import EvaluationRequest
from generator.evaluation.verdict import SolutionVerdict
from tests.functional.clock_lies import HONEST, RETURNS, TAKES
from tests.functional.clock_lies_of_drivers import LONG, ON_CPU
from tests.functional.test_clock_cuda import (
    EVERY,
    FEW_ROWS,
    FLASHINFER,
    LONG_SIZE,
    NORM,
    TRITON,
    solution,
    written,
)

_GEMM_SIZES = (8, 64, 256, 1024, 2379, 8192)
# of 4 to 7 µs, of 10 to 20 µs, and longer
_NORM_SIZES = (16, 170, 1200, 2000, 4096, 11832)
_LIES_SIZES = (256,)


def main() -> None:
    """Time each solution as often as is asked, and print its figures as they come."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--starts", type=int, default=1)
    parser.add_argument("--what", default="norms,gemm")
    parser.add_argument("--named", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--sizes", default="")
    parser.add_argument("--group", type=int, default=4)
    asked = parser.parse_args()
    triton = json.loads(TRITON.read_text())
    lies = [
        solution(one.name, one.source, one.passes_outputs)
        for one in (*EVERY, TAKES)
        if any(word in one.name for word in asked.named.split(","))
    ]
    tasks = {
        "norms": (
            _NORM_SIZES,
            [
                {**triton, "name": "triton"},
                solution("flashinfer", FLASHINFER, definition=NORM),
                {**triton, "name": "triton again"},
            ],
        ),
        "gemm": (
            _GEMM_SIZES,
            [solution("filled", HONEST), solution("returned", RETURNS, False)],
        ),
        "lies": (
            _LIES_SIZES,
            # processes differ by a microsecond: a lie gains what it has beyond these
            [solution("first", HONEST), *lies, solution("last", HONEST)],
        ),
        "long": (
            (LONG_SIZE,),
            [
                solution("first", HONEST),
                *(solution(one.name, one.source) for one in LONG),
            ],
        ),
        "cpu": (
            (FEW_ROWS,),
            [
                solution("first", FLASHINFER, definition=NORM),
                solution(ON_CPU.name, ON_CPU.source, definition=NORM),
            ],
        ),
    }
    own = tuple(map(int, asked.sizes.split(","))) if asked.sizes else None
    with closing(api.Evaluator()) as evaluator:
        for repeat in range(asked.repeats):
            for name in asked.what.split(","):
                sizes, values = tasks[name]
                only = asked.only.split(",") if asked.only else []
                values = [v for v in values if not only or v["name"] in only]
                with tempfile.TemporaryDirectory() as folder:
                    about = evaluator, Path(folder), own or sizes, values
                    for verdict in _timed(*about, asked.group, asked.starts):
                        _print(repeat, verdict)


def _timed(
    evaluator: api.Evaluator,
    folder: Path,
    sizes: tuple[int, ...],
    values: Sequence[Mapping[str, Any]],
    group: int,
    starts: int,
) -> Iterator[SolutionVerdict]:
    """Yield the verdict of each solution; those of a group come together, at its end."""
    root, chosen = written(folder, sizes, *values)
    dataset = api.open_dataset(root)
    solutions = api.read_solutions(dataset, [str(path) for path in chosen])
    asks = EvaluationRequest(
        "cuda", "dataset", timing=True, timeout=60.0, starts=starts
    )
    for begin in range(0, len(solutions), group):
        asked = solutions[begin : begin + group]
        for _, verdict in evaluator.verdicts(dataset, asked, asks):
            yield verdict


def _print(repeat: int, verdict: SolutionVerdict) -> None:
    """Print a line for each workload of a solution; its name ends with the size."""
    about = f"{repeat} {verdict.solution}"
    notes = "; ".join(verdict.notes)
    print(
        f"{about}: {verdict.verdict} {verdict.reason} ({verdict.seconds:.1f} s) {notes}",
        flush=True,
    )
    for case in verdict.cases:
        timing = case.timing
        if not timing:
            continue
        figures = {
            "ms": timing["latency_ms"],
            "±": timing["error_ms"],
            "of light": timing.get("fraction_of_light"),
            "of measured": timing.get("fraction_of_measured"),
            "over production": timing.get("speedup_over_production"),
            "± over": timing.get("speedup_over_production_error"),
            "production ms": timing.get("production_latency_ms"),
            "empty ms": timing["empty_ms"],
        }
        text = ", ".join(f"{n} {v:.4f}" for n, v in figures.items() if v is not None)
        print(
            f"{about} {case.case[-6:]}: {text}, {timing['iterations']} calls",
            flush=True,
        )
        for number, start in enumerate(timing.get("by_start", ())):
            names = ("latency_ms", "production_latency_ms", "speedup_over_production")
            each = " ".join(f"{start.get(name, 0.0):.5f}" for name in names)
            print(f"  start {number + 1}: {each}, {start['iterations']} calls")
    spent = ", ".join(f"{part} {s:.1f}" for part, s in verdict.seconds_of.items())
    print(f"  seconds: {spent}", flush=True)


if __name__ == "__main__":
    main()
