"""The command `trace-dataset audit`: prove that the tests can fail."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from generator.cli import options
from generator.cli.choose import Choice
from generator.cli.executors import make_executor
from generator.cli.output import numbered, require_modules, say, show, write_files
from generator.problems.messages import plural, quote

_NEEDED = ("torch", "numpy", "pytest", "safetensors")
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
@options.choice
@options.jobs()
@options.executor
@options.path(
    *("--resume", "state"),
    help="Folder of earlier results, which are used again if nothing changed; below "
    "~/.cache/gen-tests if not given.",
)
@options.fresh()
@options.tolerance
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
@options.output_file(
    "With --tolerances: write the tables there as Markdown.", "FILE.md"
)
@options.form()
def audit(
    choice: Choice,
    jobs: int,
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
    choice.require("audit")
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
            "--tolerances goes with --tolerance, --jobs, --executor, --format and --output alone."
        )
    if output is not None and not tolerances:
        raise click.UsageError("--output goes with --tolerances.")
    if tolerances:
        return _tolerances(choice, jobs, executor, tolerance, form, output)
    from generator.execution.definition_task import Keeping, default_folder, run_task
    from generator.mutation.report import mutants_report, seeds_report
    from generator.mutation.tasks import audit_task, seeds_task
    from generator.results.audits import Recorder

    _, files = choice.find()
    require_modules("An audit needs", _NEEDED)
    dataset = choice.dataset
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
    recorder = Recorder(dataset, files) if recorded else None
    tell = numbered(
        len(files),
        "not audited",
        lambda result: (
            f"{plural(len(result.mutants), 'mutant')}, "
            f"{result.counts['survived']} survived, "
        ),
    )
    results = run_task(files, audit_task(dataset, tolerance), runs, keeping, tell)
    if recorder is not None:
        for line in recorder.record(results):
            say(line)
    return show(mutants_report(results, survivors=survivors), form)


def _floors(**given: Any) -> Any:
    assert audit.callback is not None
    return audit.callback(**{**given, "tolerances": True})


floors = click.Command(
    "floors",
    params=audit.params,
    callback=_floors,
    hidden=True,
    help="Do what `trace-dataset audit --tolerances` does; the name of version 0.1.",
)


def _tolerances(
    choice: Choice,
    jobs: int,
    executor: str,
    tolerance: float | None,
    form: str,
    output: Path | None,
) -> int:
    """Compare tolerances with the errors of correct outputs, measured in float64."""
    _, files = choice.find()
    if tolerance == 0.0:
        raise click.UsageError(f"--tolerance {tolerance}: choose a number above 0.")
    if output is not None and output.suffix != ".md":
        raise click.UsageError(f"--output {output}: choose a name that ends in .md.")
    require_modules("Measuring tolerances needs", _NEEDED)
    from generator.execution.definition_task import Keeping, run_task
    from generator.mutation.tasks import tolerance_task
    from generator.mutation.tolerances.judge import problems
    from generator.mutation.tolerances.report import tolerances_report
    from generator.reports import printed

    tell = numbered(len(files), "not measured", lambda result: "")
    task = tolerance_task(choice.dataset, tolerance)
    runs = make_executor(executor, jobs)
    results = run_task(files, task, runs, Keeping(None), tell)
    against = problems(results)
    if output is not None:
        page = tolerances_report(results, against, is_page=True)
        text = "".join(printed(page, "markdown"))
        write_files(output.parent, {output.name: text.encode()})
    report = tolerances_report(results, against, is_page=form == "markdown")
    return show(report, form)
