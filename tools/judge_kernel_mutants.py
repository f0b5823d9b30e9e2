"""Judge mutants of the example kernels, many at once, and say which pass.

Called by `python tools/evaluate_mutants.py --kernels`. Results are written as JSON lines as
they come, so that a run that reaches its limit has what it judged. A mutant that does not
build counts apart.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from generator.dataset.paths import discover_definitions
from generator.evaluation.evaluate import Asks, evaluate
from generator.evaluation.solution import Solution
from generator.evaluation.verdict import (
    COMPILE_ERROR,
    INVALID,
    JUDGE_ERROR,
    PASSED,
    SKIPPED,
    SolutionVerdict,
)
from generator.execution.gpus import visible_gpus
from generator.execution.local import LocalExecutor
from tools.kernel_mutants import KernelMutant, mutated

_SECRET = 21
_EXAMPLES = Path("solutions/examples")
_FATES = {
    PASSED: "passed",
    COMPILE_ERROR: "not built",
    SKIPPED: "not judged",
    INVALID: "not judged",
    JUDGE_ERROR: "not judged",
}


class _Over(Exception):
    """Say that the time is over."""


def judge_kernel_mutants(
    *,
    device: str,
    jobs: int,
    most: int,
    names: Sequence[str],
    seconds: float,
    output: Path | None,
) -> int:
    """Judge up to `most` mutants of each example that runs on a device.

    `names` are those of examples, all without any. Return the exit status: 1 where
    over 1 % of what was built passes, or something was not judged.
    """
    planned: dict[str, KernelMutant] = {}
    solutions = []
    for value in _examples(names, device):
        mutants = mutated(value)
        if len(mutants) > most:
            draw = random.Random(f"{_SECRET} {value['name']}")
            mutants = draw.sample(mutants, most)
        for mutant, made in mutants:
            planned[made["name"]] = mutant
            solutions.append(Solution(made, made["name"]))
    definitions = discover_definitions(Path()).files
    gpus: tuple[str, ...] = ()
    if device == "cuda":
        # every task builds by itself, and most of the time is the CPU's
        found = [gpu.name for gpu in visible_gpus().found]
        gpus = tuple(found * -(-jobs // max(len(found), 1)))
    asks = Asks(device, "cases", timeout=20.0, secret=_SECRET, gpus=gpus, budget=120.0)
    begun = time.monotonic()
    verdicts: list[SolutionVerdict] = []
    file = None if output is None else output.open("a", encoding="utf-8")

    def keep(verdict: SolutionVerdict) -> None:
        verdicts.append(verdict)
        if file is not None:
            file.write(json.dumps(_line(verdict, planned[verdict.solution])) + "\n")
            file.flush()
        if time.monotonic() - begun > seconds:
            raise _Over

    try:
        evaluate(solutions, definitions, Path(), asks, LocalExecutor(jobs), jobs, keep)
    except _Over:
        print(f"the limit of {seconds:g} s was reached", file=sys.stderr)
    finally:
        if file is not None:
            file.close()
    return _said(verdicts, planned, len(solutions))


def _examples(names: Sequence[str], device: str) -> list[dict[str, Any]]:
    found = []
    for path in sorted(_EXAMPLES.glob("*/*/*.json")):
        value = json.loads(path.read_text("utf-8"))
        needs_gpu = value["spec"]["language"] in ("triton", "cuda", "tilelang")
        if (not names or value["name"] in names) and (
            device == "cuda" or not needs_gpu
        ):
            found.append(value)
    return found


def _line(verdict: SolutionVerdict, mutant: KernelMutant) -> dict[str, Any]:
    about = asdict(mutant)
    del about["source"]
    said = ("solution", "verdict", "case", "reason", "seconds")
    return {**about, **{name: getattr(verdict, name) for name in said}}


def _said(
    verdicts: Sequence[SolutionVerdict], planned: dict[str, KernelMutant], total: int
) -> int:
    """Print the table by class, and who passed; return the exit status."""
    counts = Counter[tuple[str, str]]()
    for verdict in verdicts:
        fate = _FATES.get(verdict.verdict, "refused")
        kind = planned[verdict.solution].kind
        counts[kind, fate] += 1
        counts["all", fate] += 1
        if fate in ("passed", "not judged"):
            why = "" if fate == "passed" else f" ({verdict.reason})"
            print(f"{fate}: {verdict.solution}: {planned[verdict.solution].name}{why}")
    print(
        "| class | refused | passed | not built | not judged |\n|---|---|---|---|---|"
    )
    for kind in sorted({kind for kind, _ in counts}):
        fates = ("refused", "passed", "not built", "not judged")
        print(f"| {kind} | " + " | ".join(str(counts[kind, f]) for f in fates) + " |")
    print(f"{len(verdicts)} of {total} mutants were judged")
    built = counts["all", "refused"] + counts["all", "passed"]
    share = counts["all", "passed"] / max(built, 1)
    return int(share > 0.01 or counts["all", "not judged"] > 0)
