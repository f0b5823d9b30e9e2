"""The command `gen-tests`: render reference tests from a dataset's definitions."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator import __version__
from generator.cli.choose import check_choice, require_definitions
from generator.cli.options import (
    check_option,
    choice_options,
    dataset_option,
    force_option,
    json_option,
    output_option,
    tolerance_option,
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
from generator.rendering.plan import DEFAULT_SIZES, SIZES, RenderOptions

if TYPE_CHECKING:
    from generator.dataset.definition import Definition
    from generator.ground_truth.resolver import Resolution
    from generator.problems import Problem
    from generator.rendering.generate import Generated


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


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@choice_options()
@dataset_option
@output_option(
    "Folder of the tests; tests/references in the dataset if not given.", "DIR"
)
@click.option(
    "--sizes",
    callback=_sizes,
    default=",".join(DEFAULT_SIZES),
    show_default=True,
    metavar="SIZES",
    help="Case sizes that the tests run by default, out of small,medium,large.",
)
@tolerance_option
@click.option(
    "--standalone/--no-standalone",
    default=None,
    help="Write the modules that the tests import beside them, or remove them; if not "
    "given, keep the form of the folder.",
)
@force_option
@check_option
@click.option(
    "--list",
    "listing",
    is_flag=True,
    help="Print each definition's ground truth, and why other providers are not used; "
    "for all definitions if none is chosen.",
)
@json_option
@click.version_option(__version__, message="%(prog)s %(version)s")
def cli(
    op_types: tuple[str, ...],
    names: tuple[str, ...],
    everything: bool,
    dataset: Path,
    output: Path | None,
    sizes: tuple[str, ...],
    tolerance: float | None,
    standalone: bool | None,
    force: bool,
    check: bool,
    listing: bool,
    as_json: bool,
) -> int:
    """Render one pytest file per op_type from a dataset's definitions.

    Choose definitions by --op-type, --definition-name or --all. With --definition-name,
    a test file keeps the other definitions that it holds. The result goes to stdout,
    problems to stderr. Exit status: 0 fine, 1 problems found or files out of date,
    2 wrong usage or unreadable input.
    """
    from generator.dataset.paths import UnknownName
    from generator.rules.load import load_definitions

    if not listing or everything:
        check_choice("render", op_types, names, everything)
    if check and force:
        raise click.UsageError("--check writes nothing: drop --force.")
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
        return _list(dataset, loaded.definitions, loaded.problems, as_json)

    from generator.rendering.generate import generate

    try:
        generated = generate(
            dataset,
            loaded,
            output if output is not None else dataset / "tests" / "references",
            RenderOptions(sizes, tolerance, standalone),
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
    """Print the status of each file and every problem; return the exit status."""
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
    dataset: Path,
    definitions: Sequence[Definition],
    problems: Sequence[Problem],
    as_json: bool,
) -> int:
    """Print where each definition's ground truth is from; return the exit status."""
    from generator.dataset.paths import RECORDINGS
    from generator.ground_truth.machine import this_machine
    from generator.ground_truth.resolver import resolve
    from generator.problems import has_errors

    machine = this_machine()
    with progress("Resolving ground truths"):
        resolutions = [
            resolve(definition, machine, recordings=dataset / RECORDINGS)
            for definition in definitions
        ]
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
    """Return a definition's ground truth, and why others are not used.

    A kernel that can be called comes before a recording, which is replayed beside it.
    """
    definition, chosen = resolution.definition, resolution.chosen
    replays = resolution.replay.summary
    if resolution.unresolved:
        provider = f"UNRESOLVED: {resolution.unresolved}"
    elif chosen is None:
        provider = replays or "none usable here, float64 oracle only"
    else:
        symbol = f" ({chosen.symbol})" if chosen.symbol else ""
        note = f" ({chosen.note})" if chosen.note else ""
        provider = f"{chosen.provider} {chosen.version}{symbol}{note}"
    head = f"{definition.name}  {definition.op_type}  {provider}\n"
    if chosen is not None and replays:
        head += f"    {replays}\n"
    return head + "".join(
        f"    not {p.provider}: {p.obstacle}\n" for p in resolution.rejected
    )


def main() -> None:
    """Run the command and exit with its status."""
    sys.exit(run(cli, "gen-tests"))


if __name__ == "__main__":
    main()
