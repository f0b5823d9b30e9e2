"""The command `trace-dataset replay`: ask for one refused case again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from generator.cli import options
from generator.cli.output import EXIT_USAGE, progress, require_modules, say, show
from generator.problems import Failure
from generator.problems.messages import one_line


@options.command()
def replay(
    file: Path = options.argument(metavar="FILE", type=click.Path(path_type=Path)),
    mended: Path | None = options.path(
        "Ask this solution instead of the one that was refused.", metavar="FILE"
    ),
    dataset: Path = options.dataset,
    form: str = options.form(),
) -> int:
    """Ask for the case of a failure again, with the same values.

    FILE is a failure.json that --keep-failures wrote: of `trace-dataset evaluate`, then
    it holds the solution, or of the reference tests (pytest, `trace-dataset review`), then
    the definition is tested as the dataset has it now. Both run in a sandbox. Exit
    status: 0 the case passes now; 1 it fails; 2 wrong usage, unreadable input, or a
    case that could not be judged.
    """
    require_modules("A replay needs", ("torch", "numpy", "safetensors", "pytest"))
    from generator.results.failure import OF_TEST, read_failure

    failure = read_failure(file)
    if failure["kind"] == OF_TEST:
        if mended is not None:
            raise click.UsageError(
                "--mended is for a solution: mend the definition in the dataset."
            )
        return _test_again(failure, dataset, form)
    return _solution_again(failure, mended, dataset, form)


def _test_again(failure: dict[str, Any], dataset: Path, form: str) -> int:
    from generator import api
    from generator.results.failure import rerun_report
    from generator.review.failing import replay_test

    api.require_sandbox(failure["device"])
    opened = api.open_dataset(dataset, names=[failure["definition"]])
    assert opened.files  # else Failure, with the nearest name
    with progress("Running the test again"):
        result = replay_test(failure, opened.root)
    status = show(rerun_report(result, failure["verdict"]), form)
    return EXIT_USAGE if result.status == "skipped" else status


def _solution_again(
    failure: dict[str, Any], mended: Path | None, dataset: Path, form: str
) -> int:
    from contextlib import closing
    from dataclasses import replace

    from generator import api
    from generator.evaluation.evaluate import EvaluationRequest
    from generator.evaluation.report import evaluation_report

    opened = api.open_dataset(dataset)
    solution = api.as_solution(
        opened, failure["solution"] if mended is None else _read(mended)
    )
    if solution.definition != failure["definition"]:
        raise Failure(
            f"the solution is of {one_line(solution.definition)}, the failure of "
            f"{one_line(failure['definition'], 200)}."
        )
    # values are drawn from the seed and the path that was evaluated
    again = replace(solution, path=failure["path"])
    asks = EvaluationRequest(
        failure["device"],
        failure["workloads"],
        failure["fuzz"],
        secret=failure["seed"],
        case=failure["case"],
    )
    with closing(api.Evaluator()) as evaluator, progress("Asking for the case again"):
        (verdict,) = evaluator.evaluate(opened, [again], asks)
    say(
        f"{one_line(failure['case'], 100)}: {verdict.verdict}, was {failure['verdict']}"
    )
    status = show(evaluation_report([verdict]), form)
    return status if verdict.is_judged else EXIT_USAGE


def _read(path: Path) -> dict[str, Any]:
    from generator.dataset.json_file import read_json

    read = read_json(path.parent, path.name)
    if read.problems or not isinstance(read.value, dict):
        why = read.problems[0].message if read.problems else "it is no JSON object."
        raise Failure(f"{path}: {why}")
    return read.value
