"""The Python API: load, resolve, render, validate, review and evaluate, as the commands do.

Functions return values and print nothing. What is wrong with a dataset is a Problem among
them; Failure, in one line, says what can't be done at all: no dataset, no such name, no
sandbox. Nothing imports torch but `evaluate`. docs/api.md has an example of each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from generator.dataset.paths import (
    NOTHING_THERE,
    RECORDINGS,
    DatasetFile,
    discover_definitions,
    find_root,
    select,
)
from generator.problems import Failure, Problem, Severity
from generator.problems.messages import one_line

if TYPE_CHECKING:
    from generator.dataset.definition import LoadedDefinition
    from generator.evaluation.evaluate import EvaluationRequest
    from generator.evaluation.solution import Rejected, Solution
    from generator.evaluation.verdict import SolutionVerdict
    from generator.execution.cluster import RayExecutor
    from generator.execution.local import LocalExecutor
    from generator.ground_truth.resolver import Resolution
    from generator.rendering.generate import Generated
    from generator.rendering.plan import RenderOptions
    from generator.review.review import Review, ReviewRequest
    from generator.review.sources import Sources
    from generator.rules.load import LoadedDefinitions
    from generator.validation.validate import Counts, ValidationPlan

_RESULTS_BYTES = 256 << 20
_NOT_RUN = "solutions run in a sandbox only"
# then a fresh process takes over, since a process leaks a little memory with each task
_TASKS_OF_A_PROCESS = 64


@dataclass(frozen=True)
class Dataset:
    """A dataset's root, and which of its definitions are meant: all, or some.

    `op_types` and `names` choose; a name that the dataset lacks raises Failure where
    definitions are read.
    """

    root: Path
    op_types: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @cached_property
    def files(self) -> tuple[DatasetFile, ...]:
        """Return the files of the definitions, without reading them. Raises Failure."""
        discovered = discover_definitions(self.root)
        require_definitions(discovered.problems, readable=bool(discovered.files))
        return select(discovered, self.op_types, self.names)

    @cached_property
    def loaded(self) -> LoadedDefinitions:
        """Return the definitions, and what is wrong with their files. Raises Failure."""
        from generator.rules.load import load_definitions

        loaded = load_definitions(self.root, op_types=self.op_types, names=self.names)
        require_definitions(loaded.problems, readable=bool(loaded.op_types))
        return loaded

    def of(self, *names: str) -> Dataset:
        """Return the dataset with these definitions alone."""
        return Dataset(self.root, (), names)

    def definition(self, name: str) -> LoadedDefinition:
        """Return a definition. Raises Failure, with its first Problem if it has one."""
        loaded = self.of(name).loaded
        for definition in (*loaded.definitions, *loaded.unfit):
            return definition
        raise Failure(str(next(iter(loaded.problems), f"{name} can't be read.")))

    def workloads(self, name: str) -> list[dict[str, Any]]:
        """Return a definition's workloads; lines that are none are left out."""
        from generator.dataset.file_reading import is_file
        from generator.dataset.json_file import read_json_lines

        (file,) = self.of(name).files
        path = f"workloads/{file.op_type}/{file.name}.jsonl"
        if not is_file(self.root, path):
            return []
        values = (value for _, value in read_json_lines(self.root, path).lines)
        return [
            v["workload"] for v in values if isinstance(v, dict) and "workload" in v
        ]


def open_dataset(
    path: Path | str | None = None,
    *,
    op_types: Sequence[str] = (),
    names: Sequence[str] = (),
) -> Dataset:
    """Return the dataset at a path, or around the current folder, as git finds its own.

    Nothing is read yet. Raises Failure for a folder that is no dataset's root.
    """
    root = find_root(Path.cwd()) if path is None else Path(path)
    require_definitions(discover_definitions(root).problems)
    return Dataset(root, _names(op_types), _names(names))


def _names(chosen: Sequence[str]) -> tuple[str, ...]:
    """Return names as a tuple; a text is one name, not as many as it has letters."""
    return (chosen,) if isinstance(chosen, str) else tuple(chosen)


def require_definitions(problems: Sequence[Problem], *, readable: bool = True) -> None:
    """Raise Failure where there is no dataset, an empty one, or nothing is `readable`."""
    for problem in problems:
        if problem.rule in NOTHING_THERE:
            raise Failure(f"{problem.message} {problem.fix}")
        if not readable and problem.severity is Severity.ERROR:
            raise Failure(f"{problem.file}: {problem.message} {problem.fix}")


def resolve(dataset: Dataset) -> list[Resolution]:
    """Return for each definition which providers can be its ground truth here."""
    from generator.ground_truth.machine import this_machine
    from generator.ground_truth.resolver import resolve as resolved

    machine = this_machine()
    recordings = dataset.root / RECORDINGS
    return [
        resolved(definition, machine, recordings=recordings)
        for definition in dataset.loaded.definitions
    ]


def render(
    dataset: Dataset,
    output: Path | str | None = None,
    options: RenderOptions | None = None,
    *,
    force: bool = False,
    check: bool = False,
) -> Generated:
    """Render the tests of the definitions into a folder, tests/references by default.

    With `check` nothing is written; `force` overwrites what a person edited. Files of
    op_types that the dataset has no more are removed where all definitions are meant.
    Raises Failure where writing fails, and for a folder of the dataset's own content.
    """
    from generator.dataset.paths import is_dataset
    from generator.rendering.generate import generate
    from generator.rendering.plan import RenderOptions
    from generator.results.kernel_evidence import KernelEvidence

    folder = Path(output or dataset.root / "tests" / "references")
    with suppress(ValueError):
        inside = folder.resolve().relative_to(dataset.root.resolve()).as_posix()
        if is_dataset(inside):
            where = inside.partition("/")[0]
            raise Failure(
                f"{folder} lies in the dataset's {where}/: tests go elsewhere."
            )
    if folder.exists() and not folder.is_dir():
        raise Failure(f"Can't write tests to {folder}: it is a file, not a folder.")
    try:
        return generate(
            dataset.root,
            dataset.loaded,
            folder,
            options or RenderOptions(),
            by_name=bool(dataset.names),
            everything=not (dataset.names or dataset.op_types),
            force=force,
            check=check,
            agreed=KernelEvidence(dataset.root),
        )
    except OSError as error:
        reason = error.strerror or str(error)
        raise Failure(f"Can't write {error.filename}: {reason}.") from None


@dataclass
class Validation:
    """The Problems of a dataset, as a stream, and the counts.

    Iterating yields each Problem once; `counts` is right after the last one.
    """

    problems: Iterator[Problem]
    counts: Counts

    def __iter__(self) -> Iterator[Problem]:
        """Return the stream."""
        return self.problems


def nothing(plan: ValidationPlan) -> tuple[Problem, ...]:
    """Return no Problem."""
    return ()


def validate(
    dataset: Dataset,
    *,
    rules: Sequence[str] = (),
    config: Mapping[str, Any] | None = None,
    jobs: int = 1,
    more: Callable[[ValidationPlan], tuple[Problem, ...]] = nothing,
) -> Validation:
    """Check definitions and all files that belong to them; no code of them runs.

    `rules` are names of rules or groups, all if there is none; `config` are the figures
    of a model that const axes must equal. `more` adds Problems of one's own to the plan.
    Raises Failure.
    """
    from dataclasses import replace

    from generator.rules.catalogue import select_rules
    from generator.validation.validate import Counts, make_plan, run_plan

    chosen = select_rules(_names(rules)) if rules else None
    plan = make_plan(dataset.root, op_types=dataset.op_types, names=dataset.names)
    require_definitions(plan.problems)
    plan = replace(plan, problems=plan.problems + more(plan))
    counts = Counts()
    problems = run_plan(plan, counts, rules=chosen, config=config, jobs=jobs)
    return Validation(problems, counts)


def changes(
    dataset: Dataset, base: str | None = None, head: str | None = None
) -> AbstractContextManager[Sources]:
    """Return both sides of a change of a git checkout, as a context. Raises Failure."""
    from generator.review.revisions import open_sources

    return open_sources(dataset.root, base, head)


def review(
    sources: Sources, asked: ReviewRequest | None = None, *, jobs: int = 1
) -> Review:
    """Return the review of a change: decision, grounds, what is still to be shown.

    Nothing is executed. `generator.review.shown` prints it in a format.
    """
    from generator.review.review import make_review

    return make_review(sources, jobs, asked)


@dataclass
class Evaluator:
    """Processes that evaluate solutions, run after run, and stay between the runs.

    They keep a sandbox with torch for the next solution, and a GPU's context. `close` ends
    these. `executor` is one of another kind.
    """

    jobs: int = 1
    executor: LocalExecutor | RayExecutor | None = None
    _stays: LocalExecutor | None = field(default=None, init=False)

    def evaluate(
        self,
        dataset: Dataset,
        solutions: Sequence[Solution | Rejected],
        asks: EvaluationRequest | None = None,
    ) -> list[SolutionVerdict]:
        """Return the verdicts on solutions, in their order; raises as `verdicts`."""
        verdicts = dict(self.verdicts(dataset, solutions, asks))
        return [verdicts[place] for place in range(len(solutions))]

    def verdicts(
        self,
        dataset: Dataset,
        solutions: Sequence[Solution | Rejected],
        asks: EvaluationRequest | None = None,
    ) -> Iterator[tuple[int, SolutionVerdict]]:
        """Yield the place and the verdict of each solution as it comes.

        Raises Failure where none can run, Cancelled where another thread cancels.
        """
        from generator.evaluation.evaluate import EvaluationRequest, verdicts_on
        from generator.execution.local import LocalExecutor

        asks = asks or EvaluationRequest()
        require_sandbox(asks.device)
        if self.executor is None:
            self._stays = self._stays or LocalExecutor(self.jobs, stays=True)
        executor = self.executor or self._stays
        assert executor is not None
        files = dataset.files
        about = (files, dataset.root, asks, executor, self.jobs)
        per_worker = 1 if self.executor else _TASKS_OF_A_PROCESS
        yield from verdicts_on(solutions, *about, per_worker=per_worker)

    def cancel(self) -> None:
        """End the run under way in another thread, which raises Cancelled there."""
        executor, self._stays = self._stays, None
        if executor is not None:
            executor.cancel()

    def close(self) -> None:
        """End the processes."""
        executor, self._stays = self._stays, None
        if executor is not None:
            executor.close()


def require_sandbox(device: str = "cpu") -> None:
    """Raise Failure where solutions can't run here, with what is missing."""
    from generator.execution.sandbox import refusal

    require_device(device)
    if reason := refusal():
        raise Failure(f"{_NOT_RUN}: {one_line(reason)}.")


def require_device(device: str) -> None:
    """Raise Failure where CUDA is asked for and can't be used, with what is missing."""
    from generator.evaluation.environment import why_no_cuda

    if device == "cuda" and (lacks := why_no_cuda()):
        raise Failure(f"--device cuda: {one_line(lacks)}.")


def read_solutions(
    dataset: Dataset, named: Sequence[str] = (), authors: Sequence[str] = ()
) -> list[Solution | Rejected]:
    """Return solutions by file or name, else those of the definitions. Raises Failure."""
    from generator.evaluation.solution import read_solutions as read

    return read(dataset.root, dataset.files, _names(named), _names(authors))


def as_solution(dataset: Dataset, value: Mapping[str, Any]) -> Solution:
    """Return the solution of a JSON value. Raises Failure for what can't be judged."""
    from tempfile import TemporaryDirectory

    from generator.dataset.atomic_write import write_below
    from generator.evaluation.solution import Solution

    with TemporaryDirectory(prefix="trace-dataset-solution-") as name:
        content = json.dumps(value).encode("utf-8", "surrogatepass")
        write_below(Path(name), "solution.json", content)
        (chosen,) = read_solutions(dataset, [f"{name}/solution.json"])
    if not isinstance(chosen, Solution):
        raise Failure(f"the solution: {chosen.why.removesuffix('.')}.")
    return Solution(chosen.value, "solution.json")


def read_results(path: Path | str) -> list[SolutionVerdict]:
    """Return the verdicts of a results.json that an evaluation wrote. Raises Failure."""
    from generator.dataset.file_reading import read_bytes
    from generator.evaluation.verdict import SolutionVerdict

    path = Path(path)
    try:
        value = json.loads(read_bytes(path.parent, path.name, _RESULTS_BYTES))
        return [SolutionVerdict.from_dict(one) for one in value["solutions"]]
    except OSError as error:
        raise Failure(f"{path}: {error.strerror or error}.") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Failure(f"{path}: it is no results.json of evaluate.") from None
