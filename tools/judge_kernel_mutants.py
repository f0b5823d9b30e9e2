"""Judge mutants of the example kernels, many at once, and sort those that pass.

Called by `python tools/evaluate_mutants.py --kernels`. Results are written as JSON lines as
they come, so that a run that reaches its limit has what it judged; the next run with the
same file goes on from there. A mutant that does not build counts apart.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from generator.dataset.paths import discover_definitions
from generator.evaluation.evaluate import EvaluationRequest, verdicts_on
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
from tools.kernel_equivalence import (
    DEFECT,
    ROUNDING,
    SAME_BITS,
    SAME_CODE,
    UNKNOWN,
    Fate,
    fates,
)
from tools.kernel_mutants import KernelMutant, mutated

_SECRET = 21
_EXAMPLES = Path("solutions/examples")
_SAID = ("verdict", "case", "reason", "seconds")
REFUSED, NOT_BUILT, NOT_JUDGED = "refused", "not built", "not judged"
_FATES = {
    PASSED: UNKNOWN,
    COMPILE_ERROR: NOT_BUILT,
    SKIPPED: NOT_JUDGED,
    INVALID: NOT_JUDGED,
    JUDGE_ERROR: NOT_JUDGED,
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

    `names` are those of examples, all without any. What passes is compared with its
    kernel (`kernel_equivalence`). Return the exit status: 1 where over 1 % of what is built
    and not equivalent passes, or something was not judged.
    """
    planned: dict[str, KernelMutant] = {}
    values: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    solutions = []
    for value in _examples(names, device):
        mutants = mutated(value)
        if len(mutants) > most:
            draw = random.Random(f"{_SECRET} {value['name']}")
            mutants = draw.sample(mutants, most)
        for mutant, made in mutants:
            planned[made["name"]] = mutant
            values[made["name"]] = value, made
            solutions.append(Solution(made, made["name"]))
    definitions = discover_definitions(Path()).files
    gpus: tuple[str, ...] = ()
    if device == "cuda":
        # every task builds by itself, and most of the time is the CPU's
        found = [gpu.name for gpu in visible_gpus().found]
        gpus = tuple(found * -(-jobs // max(len(found), 1)))
    asks = EvaluationRequest(
        device, "cases", timeout=20.0, secret=_SECRET, gpus=gpus, budget=120.0
    )
    asks = replace(asks, until_wrong=True)
    begun = time.monotonic()
    verdicts = _earlier(output, planned)
    judged = {verdict.solution for verdict in verdicts}
    solutions = [one for one in solutions if one.name not in judged]
    file = None if output is None else output.open("a", encoding="utf-8")

    def keep(verdict: SolutionVerdict) -> None:
        verdicts.append(verdict)
        if file is not None:
            file.write(json.dumps(_line(verdict, planned[verdict.solution])) + "\n")
            file.flush()
        if time.monotonic() - begun > seconds:
            raise _Over

    try:
        # large parts: each starts sandboxes of its own
        parts = -(-jobs // max(len({v["definition"] for v, _ in values.values()}), 1))
        about = (definitions, Path(), asks, LocalExecutor(jobs), parts)
        for _, verdict in verdicts_on(solutions, *about):
            keep(verdict)
    except _Over:
        print(f"the limit of {seconds:g} s was reached", file=sys.stderr)
    passed = [values[v.solution] for v in verdicts if v.verdict == PASSED]
    sorted_out = fates(passed, device, jobs, _SECRET)
    if file is not None:
        for name, fate in sorted_out.items():
            file.write(json.dumps({"solution": name, **asdict(fate)}) + "\n")
        file.close()
    return _said(verdicts, planned, sorted_out, len(planned))


def _earlier(
    output: Path | None, planned: Mapping[str, KernelMutant]
) -> list[SolutionVerdict]:
    """Return the verdicts of earlier runs on what is planned, from their file."""
    if output is None or not output.exists():
        return []
    lines = map(json.loads, output.read_text("utf-8").splitlines())
    return [
        SolutionVerdict(line["solution"], "", "", "", "", **{n: line[n] for n in _SAID})
        for line in lines
        if "verdict" in line and _is_planned(line, planned)
    ]


def _is_planned(line: Mapping[str, Any], planned: Mapping[str, KernelMutant]) -> bool:
    """Return whether a line is about the mutant that has its name now."""
    mutant = planned.get(line["solution"])
    if mutant is None:
        return False
    about = _about(mutant)
    return all(line[name] == about[name] for name in about)


def _examples(names: Sequence[str], device: str) -> list[dict[str, Any]]:
    found = []
    for path in sorted(_EXAMPLES.glob("*/*/*.json")):
        value = json.loads(path.read_text("utf-8"))
        needs_gpu = value["spec"]["language"] in ("triton", "cuda", "tilelang")
        runs = not needs_gpu
        if device == "cuda":
            runs = value["spec"]["target_hardware"] != ["cpu"]
        if runs and (not names or value["name"] in names):
            found.append(value)
    return found


def _line(verdict: SolutionVerdict, mutant: KernelMutant) -> dict[str, Any]:
    about = _about(mutant)
    about["solution"] = verdict.solution
    return {**about, **{name: getattr(verdict, name) for name in _SAID}}


def _about(mutant: KernelMutant) -> dict[str, Any]:
    """Return what a mutant changes, without its whole source."""
    return {k: v for k, v in asdict(mutant).items() if k != "source"}


def _said(
    verdicts: Sequence[SolutionVerdict],
    planned: Mapping[str, KernelMutant],
    sorted_out: Mapping[str, Fate],
    total: int,
) -> int:
    """Print the table by class, and who is no equivalent; return the exit status."""
    counts = Counter[tuple[str, str]]()
    for verdict in verdicts:
        name = verdict.solution
        fate, why = _FATES.get(verdict.verdict, REFUSED), verdict.reason
        if name in sorted_out:
            fate, why = sorted_out[name].kind, sorted_out[name].detail
        counts[planned[name].kind, fate] += 1
        counts["all", fate] += 1
        if fate in (DEFECT, ROUNDING, UNKNOWN, NOT_JUDGED):
            print(f"{fate}: {name}: {planned[name].name} ({why})")
    alike = (SAME_CODE, SAME_BITS, ROUNDING)
    every = (REFUSED, *alike, DEFECT, UNKNOWN, NOT_BUILT, NOT_JUDGED)
    print("| class | " + " | ".join(every) + " |")
    print("|---" * (len(every) + 1) + "|")
    for kind in sorted({kind for kind, _ in counts}):
        print(f"| {kind} | " + " | ".join(str(counts[kind, f]) for f in every) + " |")
    print(f"{len(verdicts)} of {total} mutants were judged")
    survived = counts["all", DEFECT] + counts["all", UNKNOWN]
    share = survived / max(counts["all", REFUSED] + survived, 1)
    return int(share > 0.01 or counts["all", NOT_JUDGED] > 0)
