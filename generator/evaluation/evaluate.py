"""Evaluate solutions on the executor: a task for some solutions of one definition."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from generator.dataset.paths import DatasetFile
from generator.evaluation.solution import Solution
from generator.evaluation.verdict import (
    RUNTIME_ERROR,
    SKIPPED,
    SolutionVerdict,
)
from generator.execution.cluster import RayExecutor
from generator.execution.local import LocalExecutor
from generator.execution.outcome import DONE, RAISED, Folder, Outcome, Task

_WORK = "generator.evaluation.task:evaluate"
# solutions of a task: they share a worker that has imported torch, inputs and answers
_MOST = 16
_FOLDERS = ("definitions", "workloads", "blob/workloads")


@dataclass(frozen=True)
class Asks:
    """Hold what is asked of each solution.

    `workloads` is `cases`, `dataset` or both; `secret` seeds all values: two runs with
    one secret ask the same. `gpus` are those of this machine, one for each task that
    may run: a name that comes twice is for two tasks. Without `runs_references` only
    oracles judge, and no code of a definition is executed.
    """

    device: str = "cpu"
    workloads: str = "both"
    fuzz: int = 0
    timing: bool = False
    timeout: float = 60.0
    secret: int | None = None
    gpus: Sequence[str] = ()
    runs_references: bool = True


def evaluate(
    solutions: Sequence[Solution],
    definitions: Sequence[DatasetFile],
    dataset: Path,
    asks: Asks,
    executor: LocalExecutor | RayExecutor,
    jobs: int,
    progress: Callable[[SolutionVerdict], None] = lambda verdict: None,
) -> list[SolutionVerdict]:
    """Return the verdicts on solutions, in their order; `progress` gets each as it comes.

    Solutions of a definition that the dataset lacks are skipped, and say so.
    """
    by_name = {file.name: file for file in definitions}
    found: dict[str, SolutionVerdict] = {}
    groups: dict[str, list[Solution]] = {}
    for solution in solutions:
        if solution.definition in by_name:
            groups.setdefault(solution.definition, []).append(solution)
        else:
            why = f"the dataset has no definition {solution.definition}"
            found[solution.path] = _without(solution, "", SKIPPED, why)
    secret = secrets.randbits(62) if asks.secret is None else asks.secret
    parts = []
    for name, of_definition in groups.items():
        size = min(_MOST, max(1, -(-len(of_definition) // jobs)))
        parts += [
            (by_name[name], of_definition[at : at + size])
            for at in range(0, len(of_definition), size)
        ]
    tasks = [Task(_WORK, _arguments(*part, asks, secret)) for part in parts]
    folders = {"root": Folder(dataset, _FOLDERS)}
    for place, outcome in executor.run(tasks, folders, timeout=600.0):
        file, asked = parts[place]
        for verdict in _verdicts(file, asked, outcome):
            found[verdict.path] = verdict
            progress(verdict)
    return [found[solution.path] for solution in solutions]


def _arguments(
    file: DatasetFile, solutions: Sequence[Solution], asks: Asks, secret: int
) -> Mapping[str, object]:
    wanted = ["cases"] if asks.workloads == "cases" else ["workloads"]
    if asks.workloads == "both":
        wanted = ["cases", "workloads"]
    return {
        "file": asdict(file),
        "solutions": [asdict(solution) for solution in solutions],
        "device": asks.device,
        "asks": wanted,
        "fuzz": asks.fuzz,
        "timing": asks.timing,
        "timeout": asks.timeout,
        "gpus": list(asks.gpus),
        "secret": secret,
        "runs_references": asks.runs_references,
    }


def _verdicts(
    file: DatasetFile, asked: Sequence[Solution], outcome: Outcome
) -> list[SolutionVerdict]:
    """Return the verdicts of a task; those that it had before it ended badly count."""
    told = outcome.value["verdicts"] if outcome.status == DONE else outcome.said
    found = [SolutionVerdict.from_dict(value) for value in told]
    left = asked[len(found) :]
    why = f"the judge's worker {outcome.status}: {outcome.why}"
    for number, solution in enumerate(left):
        # a worker that raised says why nobody could be judged; one that was lost, by whom
        is_its = number == 0 and outcome.status != RAISED
        verdict = RUNTIME_ERROR if is_its else SKIPPED
        found.append(_without(solution, file.op_type, verdict, why))
    return found


def _without(
    solution: Solution, op_type: str, verdict: str, why: str
) -> SolutionVerdict:
    about = (solution.name, solution.author, solution.definition, op_type)
    return SolutionVerdict(*about, solution.path, verdict, why)
