"""The command `trace-dataset verify`: keep the evidence of a dataset, and show it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from generator.cli import options
from generator.cli.choose import Choice
from generator.cli.output import drifted, say, show, status_of, write_files
from generator.problems.messages import plural

if TYPE_CHECKING:
    from generator.results.audits import Audited
    from generator.results.evidence import Run
    from generator.results.verification import Verification

_TABLE = Path("docs/generated/verification.md")


@options.command()
def verify(
    choice: Choice = options.part,
    recorded: tuple[Path, ...] = options.path(
        "Save the results of this file, or of each *.jsonl and *.xml (JUnit) of this "
        "folder, in verification/ of the dataset; may be repeated.",
        "--record",
        multiple=True,
        metavar="RESULTS",
    ),
    wants_table: bool = options.flag(
        "Print the table; this is the default without --record.", "--table"
    ),
    results: tuple[Path, ...] = options.path(
        "Show the results of this file, or of each *.jsonl and *.xml (JUnit) of this "
        "folder, in place of those in verification/; may be repeated.",
        multiple=True,
        metavar="RESULTS",
    ),
    output: Path | None = options.output(
        "Write a summary there, and the table beside it as HTML with a search; --check "
        "compares docs/generated/verification.md if not given.",
        "FILE",
    ),
    check: bool = options.check,
    form: str = options.form("markdown"),
) -> int:
    """Show what each definition was compared with, on which machine.

    The figures come out of runs of the reference tests, and from nowhere else:

    \b
    pytest tests/references --device cuda --results results.jsonl
    trace-dataset verify --record results.jsonl
    trace-dataset verify --output docs/generated/verification.md

    How many planted defects the tests caught comes from trace-dataset audit --record.
    Evidence for another text of a definition is listed as stale: another reference,
    interface or constant, not another tag or description. Exit status 1 where a
    comparison failed.
    """
    dataset = choice.dataset
    if check or output or recorded:
        why = "the page and the record are of the whole dataset"
        options.drop(why, "--op-type", "--definition-name")
    if check:
        why = "--check goes with neither --record nor --format"
        options.drop(why, "--record", "--format", "--json")
    if recorded:
        options.drop("--record keeps results, --results shows others", "--results")
    from generator.results.audits import read_audits
    from generator.results.evidence import kept_runs, record
    from generator.results.run_results import read_all, runs_of
    from generator.results.verification_page import verification_pages
    from generator.results.verification_report import verification_report

    runs = runs_of(read_all(recorded or results))
    table = _table(dataset, runs)  # a folder that is no dataset gets no evidence
    if recorded:
        for file, names in record(dataset, runs).items():
            say(f"{file}: {plural(len(names), 'definition')} recorded")
        if not (wants_table or output or options.given("--format", "--json")):
            return _verdict(table)
    if not results:
        table = _table(dataset, kept_runs(dataset), read_audits(dataset))
    if choice.is_made:
        _, files = choice.find()
        table = table.of({file.name for file in files})
    _tell(table)
    path = output or dataset / _TABLE
    written = verification_pages(table, path.stem)
    pages = {name: text.encode("utf-8") for name, text in written.items()}
    if check:
        changed = drifted(path.parent, pages)
        if changed:
            say(f"{path} is not what the evidence gives: trace-dataset verify --output")
        return status_of(not changed)
    if output is not None:
        write_files(path.parent, pages)
        say(f"{path} and {path.with_suffix('.html').name} written")
    if output is None or form != "markdown":
        show(verification_report(table), form)
    return _verdict(table)


def _table(
    dataset: Path, runs: Iterable[Run], audits: Mapping[str, Audited] | None = None
) -> Verification:
    from generator.results.verification import table_of

    discovered, _ = Choice(dataset).find()
    return table_of(dataset, discovered, runs, audits)


def _tell(table: Verification) -> None:
    """Say on stderr what a reader of the table should know."""
    from generator.results.audits import STALE

    if not table.runs:
        say("There is no evidence yet: trace-dataset verify --record results.jsonl")
    stale = [line.definition for line in table.audits if line.state == STALE]
    for what, names in (("run", table.stale), ("audit", stale)):
        if names:
            count = plural(len(names), "definition")
            say(f"stale: {count} changed after the {what}, {names[0]} for one")
    if table.unknown:
        count = plural(len(table.unknown), "definition")
        say(f"not in the dataset: {count} of the evidence, {table.unknown[0]} for one")


def _verdict(table: Verification) -> int:
    for line in table.failed[:3]:
        say(f"{line.definition} against {line.source}: {line.verdict} {line.note}")
    return status_of(not table.failed)
