"""The command `gen-tests`: render reference tests from a dataset's definitions."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator import __version__
from generator.cli.choose import (
    check_choice,
    choice_options,
    dataset_option,
    require_definitions,
)
from generator.cli.output import (
    EXIT_FINE,
    EXIT_PROBLEMS,
    Failure,
    progress,
    run,
    say,
    write,
)
from generator.plan import DEFAULT_SIZES, SIZES, Options

if TYPE_CHECKING:
    from generator.definition import Definition
    from generator.generate import Generated
    from generator.ground_truth.resolver import Resolution
    from generator.problems import Problem


def _sizes(
    context: click.Context, parameter: click.Parameter, value: str
) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(value.split(",")))
    unknown = [size for size in chosen if size not in SIZES]
    if unknown:
        raise click.BadParameter(
            f"{unknown[0]!r} is not a size: choose out of {', '.join(SIZES)}, "
            "comma-separated."
        )
    return tuple(size for size in SIZES if size in chosen)


def _tolerance(
    context: click.Context, parameter: click.Parameter, value: float | None
) -> float | None:
    if value is not None and not 0.0 <= value < float("inf"):
        raise click.BadParameter(f"{value} is not a tolerance: it is at least 0.")
    return value


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@choice_options(
    "Render the tests of this op_type",
    "Render the tests of this definition, beside those that its file already holds",
    "Render all definitions",
)
@dataset_option
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the tests; tests/references in the dataset if not given.",
)
@click.option(
    "--sizes",
    callback=_sizes,
    default=",".join(DEFAULT_SIZES),
    show_default=True,
    metavar="SIZES",
    help="Case sizes that the tests run by default, out of small,medium,large.",
)
@click.option(
    "--tolerance",
    type=float,
    callback=_tolerance,
    metavar="X",
    help="Set atol and rtol of every comparison to X.",
)
@click.option("--force", is_flag=True, help="Overwrite files that a person edited.")
@click.option(
    "--check", is_flag=True, help="Write nothing; exit 1 where a file is out of date."
)
@click.option(
    "--list",
    "listing",
    is_flag=True,
    help="Print each definition's ground truth and why others are not used; of all "
    "definitions if none are chosen.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.version_option(__version__, message="%(prog)s %(version)s")
def cli(
    op_types: tuple[str, ...],
    names: tuple[str, ...],
    everything: bool,
    dataset: Path,
    output: Path | None,
    sizes: tuple[str, ...],
    tolerance: float | None,
    force: bool,
    check: bool,
    listing: bool,
    as_json: bool,
) -> int:
    """Render one pytest file per op_type from a dataset's definitions.

    Choose definitions by --op-type, --definition-name or --all. Data goes to stdout,
    problems to stderr. Exit status: 0 fine, 1 problems found or files out of date,
    2 wrong usage or unreadable input.
    """
    from generator.load import load_definitions
    from generator.select import UnknownName

    if not listing or everything:
        check_choice("render", op_types, names, everything)
    if check and force:
        raise click.UsageError(
            "--check writes nothing, so there is nothing to --force."
        )
    if listing and (check or force):
        raise click.UsageError("--list renders nothing: drop --check and --force.")
    try:
        loaded = load_definitions(dataset, op_types=op_types, names=names)
    except UnknownName as error:
        raise Failure(str(error)) from None
    require_definitions(loaded.problems)
    if not loaded.op_types:
        raise Failure(f"{loaded.problems[0].message} {loaded.problems[0].fix}")
    if listing:
        return _list(loaded.definitions, loaded.problems, as_json)

    from generator.generate import generate

    try:
        generated = generate(
            dataset,
            loaded,
            output if output is not None else dataset / "tests" / "references",
            Options(sizes, tolerance),
            by_name=bool(names),
            everything=everything,
            force=force,
            check=check,
        )
    except OSError as error:
        reason = error.strerror or str(error)
        raise Failure(f"Can't write {error.filename}: {reason}.") from None
    return _report(generated, as_json)


def _report(generated: Generated, as_json: bool) -> int:
    """Print what became of each file and every problem; return the exit status."""
    from generator.problems import has_errors

    if as_json:
        write(json.dumps(generated.as_dict(), indent=2) + "\n")
    else:
        write("".join(f"{o.status.value:<9}  {o.path}\n" for o in generated.shown))
        for problem in generated.problems:
            say(str(problem))
        say(generated.summary)
    failed = has_errors(generated.problems) or generated.incomplete
    return EXIT_PROBLEMS if failed else EXIT_FINE


def _list(
    definitions: Sequence[Definition], problems: Sequence[Problem], as_json: bool
) -> int:
    """Print the resolver's verdicts; return the exit status."""
    from generator.ground_truth.machine import this_machine
    from generator.ground_truth.resolver import resolve
    from generator.problems import has_errors

    machine = this_machine()
    with progress("Resolving ground truths"):
        resolutions = [resolve(definition, machine) for definition in definitions]
    if as_json:
        rows = [r.as_dict() for r in resolutions]
        value = {"definitions": rows, "problems": [p.as_dict() for p in problems]}
        write(json.dumps(value, indent=2) + "\n")
    else:
        write("".join(_lines(r) for r in resolutions))
    for problem in problems:
        if not as_json:
            say(str(problem))
    return EXIT_PROBLEMS if has_errors(problems) else EXIT_FINE


def _lines(resolution: Resolution) -> str:
    definition, chosen = resolution.definition, resolution.chosen
    if resolution.unresolved:
        provider = f"UNRESOLVED: {resolution.unresolved}"
    elif chosen is None:
        provider = "none usable here, float64 oracle only"
    else:
        symbol = f" ({chosen.symbol})" if chosen.symbol else ""
        note = f" ({chosen.note})" if chosen.note else ""
        provider = f"{chosen.provider} {chosen.version}{symbol}{note}"
    head = f"{definition.name}  {definition.op_type}  {provider}\n"
    return head + "".join(
        f"    not {v.provider}: {v.reason}\n" for v in resolution.rejected
    )


def main() -> None:
    """Run the command and exit with its status."""
    sys.exit(run(cli, "gen-tests"))


if __name__ == "__main__":
    main()
