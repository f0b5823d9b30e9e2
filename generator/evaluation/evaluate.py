"""Evaluate solutions on the executor: a task for some solutions of one definition."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from generator.dataset.paths import DatasetFile
from generator.evaluation.clock.offsets import MOST_STARTS
from generator.evaluation.conditions.condition import NAMES, SANITIZERS
from generator.evaluation.solution import Rejected, Solution
from generator.evaluation.verdict import INVALID, JUDGE_ERROR, SolutionVerdict
from generator.execution.cluster import RayExecutor
from generator.execution.local import LocalExecutor
from generator.execution.outcome import DONE, RAISED, Folder, Outcome, Task
from generator.problems import Failure
from generator.problems.messages import quote

_WORK = "generator.evaluation.task:evaluate"
# solutions of a task: they share a worker that has imported torch, inputs and answers
_MOST = 64
_FOLDERS = ("definitions", "workloads", "blob/workloads")


@dataclass(frozen=True)
class EvaluationRequest:
    """The questions to each solution, and the means to ask them.

    `workloads` is `cases`, `dataset` or both; `secret` seeds all values: two runs with
    one secret ask the same. `gpus` are those of this machine, one for each task that
    may run: a name that comes twice is for two tasks. Without `runs_references` only
    oracles judge, and no code of a definition is executed. `budget` is for all calls of
    a solution, in seconds; None derives it from their number. `case` is the name of the
    only one that is asked, `keep_failures` the folder for the files of refused cases,
    without what was expected if `hides_expected`. `until_wrong` ends a solution at its
    first wrong answer. `conditions` are asked of what passed, those of `required` must
    hold; `soak` is how long, in seconds, one lasts. `sanitizers` are the tools of
    compute-sanitizer that run what passed once more. With `memory` it is measured what
    a call takes. `memory_bytes` is what a solution may have. What is timed is timed in as
    many `starts`, each with new processes.
    """

    device: str = "cpu"
    workloads: str = "both"
    fuzz: int = 0
    timing: bool = False
    timeout: float = 60.0
    secret: int | None = None
    gpus: Sequence[str] = ()
    runs_references: bool = True
    budget: float | None = None
    case: str = ""
    keep_failures: str = ""
    hides_expected: bool = False
    until_wrong: bool = False
    conditions: Sequence[str] = ()
    required: Sequence[str] = ()
    soak: float = 10.0
    sanitizers: Sequence[str] = ()
    memory: bool = False
    memory_bytes: int | None = None
    starts: int = 1

    def __post_init__(self) -> None:
        """Refuse words that nothing is known by. Raises Failure."""
        conditions = (*self.conditions, *self.required)
        for what, words, known in (
            ("device", (self.device,), ("cpu", "cuda")),
            ("workloads", (self.workloads,), ("cases", "dataset", "both")),
            ("conditions", conditions, NAMES),
            ("sanitizers", self.sanitizers, SANITIZERS),
        ):
            for word in (str(word) for word in words if word not in known):
                raise Failure(f"{what}: {quote(word)} is none of {', '.join(known)}.")
        if type(self.starts) is not int or not 1 <= self.starts <= MOST_STARTS:
            raise Failure(
                f"starts: {quote(str(self.starts))} is not 1 to {MOST_STARTS}."
            )
        if self.starts > 1 and not self.timing:
            raise Failure("starts: they are for timing.")


def evaluate(
    solutions: Sequence[Solution | Rejected],
    definitions: Sequence[DatasetFile],
    dataset: Path,
    asks: EvaluationRequest,
    executor: LocalExecutor | RayExecutor,
    jobs: int,
) -> list[SolutionVerdict]:
    """Return the verdicts on solutions, in their order; see `verdicts_on`."""
    about = (definitions, dataset, asks, executor, jobs)
    verdicts = dict(verdicts_on(solutions, *about))
    return [verdicts[place] for place in range(len(solutions))]


def verdicts_on(
    solutions: Sequence[Solution | Rejected],
    definitions: Sequence[DatasetFile],
    dataset: Path,
    asks: EvaluationRequest,
    executor: LocalExecutor | RayExecutor,
    jobs: int,
    *,
    per_worker: int = 1,
) -> Iterator[tuple[int, SolutionVerdict]]:
    """Yield the place and the verdict of each solution as it comes.

    What was rejected when it was read has the verdict INVALID. A process runs `per_worker`
    tasks: those after the first find torch, CUDA and a sandbox ready, in later calls too
    where the executor's processes stay.
    """
    by_name = {file.name: file for file in definitions}
    groups: dict[str, list[tuple[int, Solution]]] = {}
    for place, solution in enumerate(solutions):
        if isinstance(solution, Rejected):
            yield place, _without(solution, "", INVALID, solution.why)
        else:
            groups.setdefault(solution.definition, []).append((place, solution))
    secret = secrets.randbits(62) if asks.secret is None else asks.secret
    parts: list[tuple[DatasetFile, list[tuple[int, Solution]]]] = []
    for name, of_definition in groups.items():
        size = min(_MOST, max(1, -(-len(of_definition) // jobs)))
        parts += [
            (by_name[name], of_definition[at : at + size])
            for at in range(0, len(of_definition), size)
        ]
    folders = {"root": Folder(dataset, _FOLDERS)}
    while parts:
        tasks = [
            Task(
                _WORK,
                _arguments(file, [s for _, s in part], asks, secret)
                | {"is_last": per_worker == 1},
            )
            for file, part in parts
        ]
        again = []
        for place, outcome in executor.run(
            tasks, folders, timeout=600.0, per_worker=per_worker
        ):
            file, asked = parts[place]
            verdicts = _verdicts(file, [s for _, s in asked], outcome)
            for (number, _), verdict in zip(asked, verdicts, strict=False):
                yield number, verdict
            if left := asked[len(verdicts) :]:
                again.append((file, left))
        parts = again


def _arguments(
    file: DatasetFile,
    solutions: Sequence[Solution],
    asks: EvaluationRequest,
    secret: int,
) -> dict[str, object]:
    wanted = ["cases"] if asks.workloads == "cases" else ["workloads"]
    if asks.workloads == "both":
        wanted = ["cases", "workloads"]
    return {
        "file": asdict(file),
        "solutions": [asdict(solution) for solution in solutions],
        "device": asks.device,
        "asks": wanted,
        "fuzz": asks.fuzz,
        "case": asks.case,
        "keep_failures": asks.keep_failures,
        "hides_expected": asks.hides_expected,
        "until_wrong": asks.until_wrong,
        "workloads": asks.workloads,
        "conditions": list(asks.conditions),
        "required": list(asks.required),
        "soak": asks.soak,
        "sanitizers": list(asks.sanitizers),
        "memory": asks.memory,
        "memory_bytes": asks.memory_bytes,
        "timing": asks.timing,
        "starts": asks.starts,
        "timeout": asks.timeout,
        "gpus": list(asks.gpus),
        "secret": secret,
        "runs_references": asks.runs_references,
        "budget": asks.budget,
    }


def _verdicts(
    file: DatasetFile, asked: Sequence[Solution], outcome: Outcome
) -> list[SolutionVerdict]:
    """Return the verdicts of a task, the one under way at its end included.

    What a task had before it was lost counts, and those that it did not come to are
    left for another. One that raised could judge none.
    """
    verdicts = outcome.value["verdicts"] if outcome.status == DONE else outcome.said
    judged = [SolutionVerdict.from_dict(value) for value in verdicts]
    if outcome.status != DONE:
        why = f"the judge's process {outcome.status}: {outcome.why}"
        if outcome.status == RAISED:
            why = f"not judged: {outcome.why}"
        lost = asked[len(judged) :]
        for solution in lost if outcome.status == RAISED else lost[:1]:
            judged.append(_without(solution, file.op_type, JUDGE_ERROR, why))
    return judged


def _without(
    solution: Solution | Rejected, op_type: str, verdict: str, why: str
) -> SolutionVerdict:
    name = solution.name or solution.path
    about = (name, solution.author, solution.definition, op_type)
    return SolutionVerdict(*about, solution.path, verdict, why)
