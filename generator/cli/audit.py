"""The command `trace-dataset audit`: prove that the tests can fail."""

from __future__ import annotations

import re
from pathlib import Path

import click

from generator.cli.audit_tolerances import audit_tolerances
from generator.cli.choose import check_choice, chosen_files
from generator.cli.executors import make_executor
from generator.cli.options import (
    choice_options,
    dataset_option,
    executor_option,
    fresh_option,
    jobs_option,
    output_option,
    tolerance_option,
)
from generator.cli.output import (
    format_option,
    numbered,
    require_modules,
    say,
    show,
)
from generator.problems.messages import plural, quote

_NEEDED = ("torch", "numpy", "pytest")
_MOST = 10**6
_FORM = re.compile(r"(?:([0-9]{1,7})-)?([0-9]{1,7})")


def _read_seeds(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[int, int] | None:
    """Return the first and the last seed: of `50` 1 and 50, of `17-20` these two."""
    if value is None:
        return None
    form = _FORM.fullmatch(value)
    if form is not None:
        first, last = int(form[1] or 1), int(form[2])
        if 1 <= first <= last <= _MOST:
            return first, last
    raise click.UsageError(
        f"--seeds {quote(value)}: choose a number from 1 to {_MOST}, or a range of "
        "such: 17-20."
    )


@click.command()
@choice_options()
@dataset_option
@jobs_option()
@executor_option
@click.option(
    "--resume",
    "state",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of earlier results, which are used again if nothing changed; below "
    "~/.cache/gen-tests if not given.",
)
@fresh_option()
@tolerance_option
@click.option(
    "--seeds",
    callback=_read_seeds,
    metavar="N",
    help="Plant no defects: run the tests on the unchanged references, with inputs and "
    "draws of seeds 1 to N, or of a range such as 17-20. None may fail.",
)
@click.option(
    "--whole", is_flag=True, help="With --seeds: keep all axes of large definitions."
)
@click.option(
    "--record",
    "recorded",
    is_flag=True,
    help="Save the results in verification/audit.json of the dataset; those of other "
    "definitions stay.",
)
@click.option("--survivors", is_flag=True, help="List each survivor with its line.")
@click.option(
    "--tolerances",
    is_flag=True,
    help="Plant no defects: compare each tolerance with the errors of correct outputs, "
    "measured in float64.",
)
@output_option(
    "With --tolerances: write the tables there as Markdown.", "FILE.md", dir_okay=False
)
@format_option()
def audit(
    op_types: tuple[str, ...],
    names: tuple[str, ...],
    everything: bool,
    dataset: Path,
    jobs: int | None,
    executor: str,
    state: Path | None,
    fresh: bool,
    tolerance: float | None,
    seeds: tuple[int, int] | None,
    whole: bool,
    recorded: bool,
    survivors: bool,
    tolerances: bool,
    output: Path | None,
    form: str,
) -> int:
    """Plant defects in references, one at a time, and check that a test catches each.

    Choose definitions by --op-type, --definition-name or --all. This executes the
    dataset's code, as pytest does. After an interrupt, the same command continues. The
    result goes to stdout, messages to stderr. Exit status: 0 every defect is caught, or
    with --seeds no test fails, or with --tolerances every tolerance fits; 1 a defect
    survives, a test fails, a tolerance does not fit or a definition can't be audited; 2 wrong usage or unreadable input.
    """
    from generator.cli.audit_record import record, texts_of
    from generator.execution.definition_task import Keeping, run_task
    from generator.execution.task_cache import default_folder
    from generator.mutation.report import mutants_report, seeds_report
    from generator.mutation.tasks import audit_task, seeds_task

    check_choice("audit", op_types, names, everything)
    if recorded and tolerance is not None:
        raise click.UsageError(
            "--record keeps what the tests catch as they are: drop --tolerance."
        )
    if seeds is not None and (tolerance is not None or survivors or recorded):
        raise click.UsageError(
            "--seeds plants nothing: drop --tolerance, --survivors and --record."
        )
    if whole and seeds is None:
        raise click.UsageError(
            "--whole goes with --seeds: mutants are too many for it."
        )
    if tolerances and (seeds is not None or survivors or recorded or state or fresh):
        raise click.UsageError(
            "--tolerances goes with --tolerance, --jobs, --executor, --format and --output "
            "alone."
        )
    if output is not None and not tolerances:
        raise click.UsageError("--output goes with --tolerances.")
    _, files = chosen_files(dataset, op_types, names)
    if tolerances:
        return audit_tolerances(files, dataset, jobs, executor, tolerance, form, output)
    require_modules("An audit needs", _NEEDED)
    runs = make_executor(executor, jobs)
    keeping = Keeping(state or default_folder(), fresh, say)
    if seeds is not None:
        tell = numbered(
            len(files),
            "not asked to the end",
            lambda result: (
                f"{plural(result.asked, 'test')}, {plural(len(result.alarms), 'alarm')}, "
            ),
        )
        asked = run_task(files, seeds_task(dataset, *seeds, whole), runs, keeping, tell)
        return show(seeds_report(asked, seeds), form)
    # before the work: what can't be added to must not be found out at its end
    texts = texts_of(dataset, files) if recorded else []
    tell = numbered(
        len(files),
        "not audited",
        lambda result: (
            f"{plural(len(result.mutants), 'mutant')}, "
            f"{result.counts['survived']} survived, "
        ),
    )
    results = run_task(files, audit_task(dataset, tolerance), runs, keeping, tell)
    if recorded:
        record(dataset, files, results, texts)
    return show(mutants_report(results, survivors=survivors), form)
