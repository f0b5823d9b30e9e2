"""The command `trace-dataset verify`: keep the evidence of a dataset, and show it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.cli.options import check_option, dataset_option, output_option
from generator.cli.output import (
    EXIT_FINE,
    EXIT_PROBLEMS,
    Failure,
    format_option,
    say,
    show,
)
from generator.problems.messages import plural

if TYPE_CHECKING:
    from generator.results.audited import Audited
    from generator.results.evidence import Run
    from generator.results.verification import Verification

_TABLE = Path("docs/generated/verification.md")
_PATHS = click.Path(path_type=Path)


@click.command()
@dataset_option
@click.option(
    "--record",
    "recorded",
    type=_PATHS,
    multiple=True,
    metavar="RESULTS",
    help="Save the results of this file, or of each *.jsonl and *.xml (JUnit) of this "
    "folder, in verification/ of the dataset; may be repeated.",
)
@click.option(
    "--table",
    "wants_table",
    is_flag=True,
    help="Print the table; this is the default without --record.",
)
@click.option(
    "--results",
    type=_PATHS,
    multiple=True,
    metavar="RESULTS",
    help="Show the results of this file, or of each *.jsonl and *.xml (JUnit) of this "
    "folder, in place of those in verification/; may be repeated.",
)
@output_option(
    "Write the table there, not to stdout; --check compares docs/generated/"
    "verification.md if not given.",
    "FILE",
)
@check_option
@format_option("markdown")
def verify(
    dataset: Path,
    recorded: tuple[Path, ...],
    wants_table: bool,
    results: tuple[Path, ...],
    output: Path | None,
    check: bool,
    form: str,
) -> int:
    """Show what each definition was compared with, on which machine.

    The figures come out of runs of the reference tests, and from nowhere else:

    \b
    pytest tests/references --device cuda --results results.jsonl
    trace-dataset verify --record results.jsonl
    trace-dataset verify --table --output docs/generated/verification.md

    How many planted defects the tests caught comes from trace-dataset audit --record.
    Evidence for another text of a definition is listed as stale. Exit status 1 where a
    comparison failed.
    """
    if check and (recorded or form != "markdown"):
        raise click.UsageError(
            "--check goes with neither --record nor --json or --format."
        )
    if recorded and results:
        raise click.UsageError("--record keeps results, --results shows others.")
    from generator.results.audit_file import read_audits
    from generator.results.evidence import kept_runs

    try:
        runs = _read_results(recorded or results)
        if recorded:
            _record(dataset, runs)
            if not wants_table and output is None and form == "markdown":
                return _verdict(_table(dataset, runs))
        if results:
            table = _table(dataset, runs)
        else:
            table = _table(dataset, kept_runs(dataset), read_audits(dataset))
    except ValueError as error:
        raise Failure(str(error)) from error
    _tell(table)
    return _print(table, dataset, output, check, form)


def _read_results(paths: Iterable[Path]) -> list[Run]:
    from generator.results.evidence import runs_of
    from generator.results.run_results import read_results

    files: list[Path] = []
    for path in paths:
        inside = [path]
        if path.is_dir():
            inside = sorted({*path.glob("*.jsonl"), *path.glob("*.xml")})
        if not inside:
            raise ValueError(f"There is no *.jsonl and no *.xml in {path}")
        files += inside
    try:
        return runs_of(read_results(file) for file in files)
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror}") from error


def _record(dataset: Path, runs: Sequence[Run]) -> None:
    """Add the runs to the dataset's evidence: each to the file of its machine."""
    from generator.dataset.atomic_write import write_atomically
    from generator.dataset.paths import VERIFICATION
    from generator.results.evidence import as_text, file_name, merge, read_evidence

    _table(dataset, ())  # a folder that is no dataset gets no evidence
    by_file: dict[str, list[Run]] = {}
    for run in runs:
        by_file.setdefault(f"{VERIFICATION}/{file_name(run)}", []).append(run)
    for file, of_file in by_file.items():
        old = read_evidence(dataset, file) if (dataset / file).exists() else []
        text = as_text(merge(old, of_file))
        write_atomically(dataset / file, text.encode("utf-8"))
        count = len({name for run in of_file for name in run.definitions})
        say(f"{file}: {plural(count, 'definition')} recorded")


def _table(
    dataset: Path, runs: Iterable[Run], audits: Mapping[str, Audited] | None = None
) -> Verification:
    from generator.dataset.paths import discover_definitions
    from generator.results.verification import table_of

    found = discover_definitions(dataset)
    if not found.files:
        raise ValueError(" ".join(problem.message for problem in found.problems))
    return table_of(dataset, found, runs, audits)


def _tell(table: Verification) -> None:
    """Say on stderr what a reader of the table should know."""
    from generator.results.audit_lines import STALE

    if not table.runs:
        say("There is no evidence yet: trace-dataset verify --record results.jsonl")
    stale = [line.definition for line in table.audits if line.state == STALE]
    for what, names in (("run", table.stale), ("audit", stale)):
        if names:
            count = plural(len(names), "definition")
            say(f"stale: {count} changed after the {what}, {names[0]} for one")
    if table.unknown:
        count = plural(len(table.unknown), "definition")
        say(f"{count} of the evidence are not in the dataset: {table.unknown[0]}")


def _print(
    table: Verification, dataset: Path, output: Path | None, check: bool, form: str
) -> int:
    from generator.reports import printed
    from generator.results.verification_report import verification_report

    report = verification_report(table)
    page = "".join(printed(report, "markdown")).encode("utf-8")
    if check:
        path = output or dataset / _TABLE
        if not path.exists() or path.read_bytes() != page:
            say(f"{path} is not what the evidence gives: trace-dataset verify --output")
            return EXIT_PROBLEMS
        return EXIT_FINE
    if output is not None:
        from generator.dataset.atomic_write import write_atomically

        write_atomically(output, page)
        say(f"{output} written")
    if output is None or form != "markdown":
        show(report, form)
    return _verdict(table)


def _verdict(table: Verification) -> int:
    for line in table.failed[:3]:
        say(f"{line.definition} against {line.source}: {line.verdict} {line.note}")
    return EXIT_PROBLEMS if table.failed else EXIT_FINE
