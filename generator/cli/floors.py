"""The command `trace-dataset floors`: how precise an answer can be, and must be."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.cli.choose import (
    check_choice,
    choice_options,
    chosen_files,
    dataset_option,
    jobs_option,
)
from generator.cli.output import (
    EXIT_FINE,
    EXIT_PROBLEMS,
    Numbered,
    require_modules,
    say,
    write,
)
from generator.wording import plural

if TYPE_CHECKING:
    from generator.precision.result import Floors
    from generator.problems import Problem

_NEEDED = ("torch", "numpy", "pytest", "safetensors")


@click.command()
@choice_options(
    "Measure the definitions of this op_type",
    "Measure this definition",
    "Measure all definitions",
)
@dataset_option
@jobs_option
@click.option(
    "--tolerance",
    type=float,
    metavar="X",
    help="Judge as if atol and rtol of every comparison were X.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.md",
    help="Write the tables as Markdown, whole or not at all.",
)
def floors(
    op_types: tuple[str, ...],
    names: tuple[str, ...],
    everything: bool,
    dataset: Path,
    jobs: int | None,
    tolerance: float | None,
    as_json: bool,
    output: Path | None,
) -> int:
    """Compare tolerances with what float64 shows that right answers need.

    Choose definitions by --op-type, --definition-name or --all. This executes the
    dataset's code, as pytest does. Data goes to stdout, talk to stderr. Exit status: 0
    every tolerance fits, 1 a default is too loose or too tight or a definition can't be
    measured, 2 wrong usage or unreadable input.
    """
    from generator.discover import RECORDINGS
    from generator.inquiry.pool import Options, ask
    from generator.parallel import default_jobs
    from generator.precision.inquiry import Precision

    check_choice("measure", op_types, names, everything)
    if tolerance is not None and not (math.isfinite(tolerance) and tolerance > 0):
        raise click.UsageError(f"--tolerance {tolerance}: choose a number above 0.")
    if output is not None and output.suffix != ".md":
        raise click.UsageError(f"--output {output}: choose a name that ends in .md.")
    _, files = chosen_files(dataset, op_types, names)
    require_modules("Floors need", _NEEDED)
    from generator.precision.judge import problems
    from generator.problems import has_errors

    told = Numbered(len(files))

    def tell(result: Floors, was_kept: bool) -> None:
        how = f"not measured: {result.error}" if result.error else ""
        told.say(result.definition, how or f"{result.seconds:.1f} s")

    jobs = jobs or default_jobs()
    inquiry = Precision(dataset / RECORDINGS, tolerance, jobs)
    results = ask(files, inquiry, Options(dataset, None, jobs), tell)
    against = problems(results)
    _show(results, against, as_json, output)
    failed = [result for result in results if result.error]
    say(
        f"{plural(len(results), 'definition')}, {len(failed)} not measured: "
        f"{plural(sum(p.severity.value == 'error' for p in against), 'error')}, "
        f"{plural(sum(p.severity.value == 'warning' for p in against), 'warning')}"
    )
    return EXIT_PROBLEMS if failed or has_errors(against) else EXIT_FINE


def _show(
    results: list[Floors],
    against: list[Problem],
    as_json: bool,
    output: Path | None,
) -> None:
    from generator.precision import page, table

    if output is not None:
        from generator.files import write_atomically

        write_atomically(output, page.page(results, against).encode())
    if as_json:
        value = {
            "definitions": [result.as_dict() for result in results],
            "problems": [problem.as_dict() for problem in against],
        }
        write(json.dumps(value, indent=2) + "\n")
        return
    write(table.table(results))
    for line in (*table.remarks(results), *map(str, against)):
        write(f"{line}\n")
