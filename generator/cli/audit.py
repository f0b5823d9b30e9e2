"""The command `trace-dataset audit`: prove that the tests can fail."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.cli.audit_seeds import audit_seeds, read_seeds
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
    from generator.audit.result import DefinitionResult

_NEEDED = ("torch", "numpy", "pytest")


@click.command()
@choice_options(
    "Audit the definitions of this op_type",
    "Audit this definition",
    "Audit all definitions",
)
@dataset_option
@jobs_option
@click.option(
    "--resume",
    "state",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the results so far: what is there and still true is not audited "
    "again. Below ~/.cache/gen-tests if not given.",
)
@click.option("--fresh", is_flag=True, help="Audit anew what there are results of.")
@click.option(
    "--tolerance",
    type=float,
    metavar="X",
    help="Set atol and rtol of every comparison to X, to see what would survive.",
)
@click.option(
    "--seeds",
    callback=read_seeds,
    metavar="N",
    help="Plant nothing: ask the tests about the references as they are, with inputs "
    "and draws of seeds 1 to N, or of a range such as 17-20. None may be red.",
)
@click.option(
    "--whole", is_flag=True, help="With --seeds: shorten no axis of large definitions."
)
@click.option(
    "--record",
    "recorded",
    is_flag=True,
    help="Keep the results in verification/audit.json of the dataset, beside those of "
    "the other definitions.",
)
@click.option("--survivors", is_flag=True, help="List each survivor with its line.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def audit(
    op_types: tuple[str, ...],
    names: tuple[str, ...],
    everything: bool,
    dataset: Path,
    jobs: int | None,
    state: Path | None,
    fresh: bool,
    tolerance: float | None,
    seeds: tuple[int, int] | None,
    whole: bool,
    recorded: bool,
    survivors: bool,
    as_json: bool,
) -> int:
    """Plant defects in references, one at a time, and see which tests catch them.

    Choose definitions by --op-type, --definition-name or --all. With --seeds nothing is
    planted, and no test may be red. This executes the dataset's code, as pytest does.
    Interrupted, it goes on where it was the next time. Data goes to stdout, talk to
    stderr. Exit status: 0 every defect is caught, or no test is red; 1 some survive, or
    a definition can't be audited; 2 wrong usage or unreadable input.
    """
    from generator.audit import table
    from generator.audit.mutants import Mutants
    from generator.cli.audit_record import record, texts_of
    from generator.inquiry.kept import default_folder
    from generator.inquiry.pool import Options, ask
    from generator.parallel import default_jobs

    check_choice("audit", op_types, names, everything)
    if tolerance is not None and not (math.isfinite(tolerance) and tolerance >= 0):
        raise click.UsageError(f"--tolerance {tolerance}: choose a number from 0 on.")
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
    _, files = chosen_files(dataset, op_types, names)
    require_modules("An audit needs", _NEEDED)
    options = Options(dataset, state or default_folder(), jobs or default_jobs(), fresh)
    if seeds is not None:
        return audit_seeds(files, options, seeds, whole, as_json)
    # before the work: what can't be added to must not be found out at its end
    texts = texts_of(dataset, files) if recorded else []
    told = Numbered(len(files))

    def tell(result: DefinitionResult, was_kept: bool) -> None:
        told.say(result.definition, _said(result, was_kept))

    results = ask(files, Mutants(dataset, tolerance), options, tell)
    if as_json:
        write(_json(results))
    else:
        write(table.table(results))
        for remark in table.remarks(results):
            write(f"{remark}\n")
        if survivors:
            for line in table.survivors(results):
                write(f"{line}\n")
    if recorded:
        record(dataset, files, results, texts)
    counts = table.total(results)
    judged = sum(counts.values()) - counts["equivalent"]
    say(
        f"{plural(len(results), 'definition')}: {plural(judged, 'mutant')} that are not "
        f"equivalent, {counts['survived']} survived"
    )
    return EXIT_FINE if all(r.is_fine for r in results) else EXIT_PROBLEMS


def _said(result: DefinitionResult, was_kept: bool) -> str:
    """Return what became of a definition."""
    if result.error:
        return f"not audited: {result.error}"
    how = "from the last audit" if was_kept else f"{result.seconds:.1f} s"
    mutants = plural(len(result.mutants), "mutant")
    return f"{mutants}, {result.counts['survived']} survived, {how}"


def _json(results: list[DefinitionResult]) -> str:
    from generator.audit.table import total

    value = {
        "totals": {"definitions": len(results), **total(results)},
        "definitions": [result.as_dict() for result in results],
    }
    return json.dumps(value, indent=2) + "\n"
