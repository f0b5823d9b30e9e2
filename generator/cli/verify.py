"""The command `trace-dataset verify`: keep the evidence of a dataset, and show it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.cli.choose import dataset_option
from generator.cli.output import EXIT_FINE, EXIT_PROBLEMS, Failure, say, write
from generator.wording import plural

if TYPE_CHECKING:
    from generator.audited import Audited
    from generator.evidence import Run
    from generator.verification import Table

_TABLE = Path("docs/verification.md")
_PATHS = click.Path(path_type=Path)


@click.command()
@dataset_option
@click.option(
    "--record",
    "recorded",
    type=_PATHS,
    multiple=True,
    metavar="RESULTS",
    help="Keep what this JUnit file, or each *.xml of this folder, says in "
    "verification/ of the dataset; may be repeated.",
)
@click.option(
    "--table",
    "wants_table",
    is_flag=True,
    help="Print the table; what happens without --record anyway.",
)
@click.option(
    "--results",
    type=_PATHS,
    multiple=True,
    metavar="RESULTS",
    help="Show this JUnit file, or each *.xml of this folder, in place of what "
    "verification/ has; may be repeated.",
)
@click.option(
    "--output",
    type=_PATHS,
    metavar="FILE",
    help="Write the table there and not to stdout.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Write nothing; exit 1 if the table's file (docs/verification.md, or "
    "--output) is not what the evidence gives.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def verify(
    dataset: Path,
    recorded: tuple[Path, ...],
    wants_table: bool,
    results: tuple[Path, ...],
    output: Path | None,
    check: bool,
    as_json: bool,
) -> int:
    """Show what each definition was compared with, on which machine.

    The figures come out of JUnit files of the reference tests, and from nowhere else:

    \b
    pytest tests/references --device cuda --junitxml results.xml
    trace-dataset verify --record results.xml
    trace-dataset verify --table --output docs/verification.md

    How many planted defects the tests caught comes from trace-dataset audit --record.
    Evidence for another text of a definition is listed as stale. Exit status 1 where a
    comparison failed.
    """
    if check and (recorded or as_json):
        raise click.UsageError("--check goes with neither --record nor --json.")
    if recorded and results:
        raise click.UsageError("--record keeps results, --results shows others.")
    from generator.audit_file import read_audits
    from generator.evidence import kept_runs

    try:
        runs = _read_results(recorded or results)
        if recorded:
            _record(dataset, runs)
            if not wants_table and output is None and not as_json:
                return _verdict(_table(dataset, runs))
        if results:
            table = _table(dataset, runs)
        else:
            table = _table(dataset, kept_runs(dataset), read_audits(dataset))
    except ValueError as error:
        raise Failure(str(error)) from error
    _tell(table)
    return _print(table, dataset, output, check, as_json)


def _read_results(paths: Iterable[Path]) -> list[Run]:
    from generator.evidence import runs_of
    from generator.junit import read_junit

    files: list[Path] = []
    for path in paths:
        inside = sorted(path.glob("*.xml")) if path.is_dir() else [path]
        if not inside:
            raise ValueError(f"There is no *.xml in {path}")
        files += inside
    try:
        return runs_of(read_junit(file) for file in files)
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror}") from error


def _record(dataset: Path, runs: Sequence[Run]) -> None:
    """Add the runs to the dataset's evidence: each to the file of its machine."""
    from generator.evidence import as_text, file_name, merge, read_evidence
    from generator.evidence_files import FOLDER
    from generator.files import write_atomically

    _table(dataset, ())  # a folder that is no dataset gets no evidence
    by_file: dict[str, list[Run]] = {}
    for run in runs:
        by_file.setdefault(f"{FOLDER}/{file_name(run)}", []).append(run)
    for file, of_file in by_file.items():
        old = read_evidence(dataset, file) if (dataset / file).exists() else []
        text = as_text(merge(old, of_file))
        write_atomically(dataset / file, text.encode("utf-8"))
        count = len({name for run in of_file for name in run.definitions})
        say(f"{file}: {plural(count, 'definition')} recorded")


def _table(
    dataset: Path, runs: Iterable[Run], audits: Mapping[str, Audited] | None = None
) -> Table:
    from generator.discover import discover_definitions
    from generator.verification import table_of

    found = discover_definitions(dataset)
    if not found.files:
        raise ValueError(" ".join(problem.message for problem in found.problems))
    return table_of(dataset, found, runs, audits)


def _tell(table: Table) -> None:
    """Say on stderr what a reader of the table should know."""
    from generator.audit_lines import STALE

    if not table.runs:
        say("There is no evidence yet: trace-dataset verify --record results.xml")
    if table.stale:
        count = plural(len(table.stale), "definition")
        say(f"stale: {count} changed after the run, {table.stale[0]} for one")
    stale = [line.definition for line in table.audits if line.state == STALE]
    if stale:
        count = plural(len(stale), "definition")
        say(f"stale: {count} changed after the audit, {stale[0]} for one")
    if table.unknown:
        count = plural(len(table.unknown), "definition")
        say(f"{count} of the evidence are not in the dataset: {table.unknown[0]}")


def _print(
    table: Table, dataset: Path, output: Path | None, check: bool, as_json: bool
) -> int:
    from generator.verification_text import markdown

    text = markdown(table)
    if check:
        path = output or dataset / _TABLE
        if not path.exists() or path.read_bytes() != text.encode("utf-8"):
            say(f"{path} is not what the evidence gives: trace-dataset verify --output")
            return EXIT_PROBLEMS
        return EXIT_FINE
    if output is not None:
        from generator.files import write_atomically

        write_atomically(output, text.encode("utf-8"))
        say(f"{output} written")
    if as_json:
        write(_json(table))
    elif output is None:
        write(text)
    return _verdict(table)


def _json(table: Table) -> str:
    import json

    from generator.verification_text import as_json

    return json.dumps(as_json(table), indent=2) + "\n"


def _verdict(table: Table) -> int:
    for line in table.failed[:3]:
        say(f"{line.definition} against {line.source}: {line.verdict} {line.note}")
    return EXIT_PROBLEMS if table.failed else EXIT_FINE
