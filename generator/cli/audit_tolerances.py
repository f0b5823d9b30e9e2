"""`trace-dataset audit --tolerances`: tolerances beside the errors of correct outputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.cli.choose import check_choice, chosen_files
from generator.cli.executors import make_executor
from generator.cli.options import (
    choice_options,
    dataset_option,
    executor_option,
    jobs_option,
    output_option,
    tolerance_option,
)
from generator.cli.output import (
    format_option,
    numbered,
    require_modules,
    show,
)

if TYPE_CHECKING:
    from generator.dataset.paths import DatasetFile

_NEEDED = ("torch", "numpy", "pytest", "safetensors")


@click.command(hidden=True)
@choice_options()
@dataset_option
@jobs_option()
@executor_option
@tolerance_option
@format_option()
@output_option("Write the tables there as Markdown.", "FILE.md", dir_okay=False)
def floors(
    op_types: tuple[str, ...],
    names: tuple[str, ...],
    everything: bool,
    dataset: Path,
    jobs: int | None,
    executor: str,
    tolerance: float | None,
    form: str,
    output: Path | None,
) -> int:
    """Do what `trace-dataset audit --tolerances` does; the name of version 0.1."""
    check_choice("measure", op_types, names, everything)
    _, files = chosen_files(dataset, op_types, names)
    return audit_tolerances(files, dataset, jobs, executor, tolerance, form, output)


def audit_tolerances(
    files: Sequence[DatasetFile],
    dataset: Path,
    jobs: int | None,
    executor: str,
    tolerance: float | None,
    form: str,
    output: Path | None,
) -> int:
    """Compare tolerances with the errors of correct outputs, measured in float64.

    Returns the exit status: 1 if a default is too loose or too tight, or if a definition
    can't be measured.
    """
    from generator.execution.definition_task import Keeping, run_task
    from generator.mutation.tasks import tolerance_task

    if tolerance == 0.0:
        raise click.UsageError(f"--tolerance {tolerance}: choose a number above 0.")
    if output is not None and output.suffix != ".md":
        raise click.UsageError(f"--output {output}: choose a name that ends in .md.")
    require_modules("Measuring tolerances needs", _NEEDED)
    from generator.mutation.tolerances.judge import problems
    from generator.mutation.tolerances.report import tolerances_report
    from generator.reports import printed

    tell = numbered(len(files), "not measured", lambda result: "")
    runs = make_executor(executor, jobs)
    task = tolerance_task(dataset, tolerance)
    results = run_task(files, task, runs, Keeping(None), tell)
    against = problems(results)
    if output is not None:
        from generator.dataset.atomic_write import write_atomically

        page = tolerances_report(results, against, is_page=True)
        write_atomically(output, "".join(printed(page, "markdown")).encode())
    is_page = form == "markdown"
    return show(tolerances_report(results, against, is_page=is_page), form)
