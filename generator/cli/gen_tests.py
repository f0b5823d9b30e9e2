"""The command `gen-tests`: render reference tests from a dataset's definitions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator import __version__
from generator.cli import options
from generator.cli.choose import Choice
from generator.cli.output import (
    progress,
    run_and_exit,
    say,
    seek_cycles_rarely,
    status_of,
    write_json,
    write_lines,
)
from generator.problems.messages import plural, quote, some
from generator.rendering.plan import DEFAULT_SIZES, SIZES, RenderOptions

if TYPE_CHECKING:
    from generator.api import Dataset


_TESTS = "tests/references"


def _sizes(
    context: click.Context, parameter: click.Parameter, value: str
) -> tuple[str, ...]:
    chosen = value.split(",")
    for size in chosen:
        if size not in SIZES:
            raise click.BadParameter(
                f"{size!r} is not a size: choose out of {', '.join(SIZES)}, "
                "comma-separated."
            )
    return tuple(size for size in SIZES if size in chosen)


@options.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
def cli(
    choice: Choice = options.choice,
    output: Path | None = options.output(
        "Folder of the tests; tests/references in the dataset if not given.",
        "DIR",
    ),
    sizes: tuple[str, ...] = options.value(
        "Case sizes that the tests run by default, out of small,medium,large.",
        "SIZES",
        default=",".join(DEFAULT_SIZES),
        callback=_sizes,
    ),
    tolerance: float | None = options.tolerance,
    standalone: bool | None = options.option(
        "Write the modules that the tests import beside them, or remove them; if not "
        "given, keep the form of the folder.",
        "--standalone/--no-standalone",
        default=None,
    ),
    force: bool = options.force,
    check: bool = options.check,
    listing: bool = options.flag(
        "Print each definition's ground truth, and why other providers are not used; "
        "for all definitions if none is chosen.",
        "--list",
    ),
    strict: bool = options.flag("Exit 1 where nothing is compared with a definition."),
    as_json: bool = options.as_json,
) -> int:
    """Render one pytest file per op_type from a dataset's definitions.

    Choose definitions by --op-type, --definition-name or --all. With --definition-name,
    a test file keeps the other definitions that it holds. The result goes to stdout,
    problems to stderr. Exit status: 0 fine, 1 problems found or files out of date,
    2 wrong usage or unreadable input.
    """
    if not listing or choice.everything:
        choice.require("render")
    if check:
        options.drop("--check writes nothing", "--force")
    if listing:
        options.drop("--list renders nothing", "--check", "--force", "--strict")
    seek_cycles_rarely()
    from generator import api
    from generator.problems import has_errors
    from generator.rules.unproven import unproven_line

    dataset = choice.opened()
    if listing:
        return _list(dataset, as_json)
    how = RenderOptions(sizes, tolerance, standalone)
    generated = api.render(dataset, output, how, force=force, check=check)
    if as_json:
        write_json(generated.as_dict())
    else:
        write_lines(f"{o.status.value:<9}  {o.path}" for o in generated.shown)
        for problem in generated.problems:
            say(str(problem))
        if generated.unproven:
            say(unproven_line(generated.unproven))
        say(generated.summary)
        if tolerance is not None:
            say(
                f"--tolerance {tolerance:g} stands in place of every derived bound: what "
                "these tests pass proves nothing. Rendered without it, they have the bounds."
            )
        if output is None:
            _say_others(dataset.root)
    failed = has_errors(generated.problems) or generated.incomplete
    return status_of(not (failed or (strict and generated.unproven)))


def _say_others(root: Path) -> None:
    """Say where the dataset has tests of its own among those that were rendered."""
    from generator.rendering.files import tests_of_others

    if others := tests_of_others(root, _TESTS):
        named = some([quote(name, 60) for name in others], 2)
        say(
            f"{_TESTS} also has {plural(len(others), 'test file')} that gen-tests did not "
            f"render: {named}. `--output tests/rendered` keeps ours apart; then it is "
            "`pytest tests/rendered`, and --tests tests/rendered where a command asks."
        )


def _list(dataset: Dataset, as_json: bool) -> int:
    """Print where each definition's ground truth is from; return the exit status."""
    from generator import api
    from generator.ground_truth.resolver import listed
    from generator.problems import has_errors

    loaded = dataset.loaded
    with progress("Resolving ground truths"):
        resolutions = api.resolve(dataset)
    if as_json:
        rows = [resolution.as_dict() for resolution in resolutions]
        problems = [problem.as_dict() for problem in loaded.problems]
        write_json({"definitions": rows, "problems": problems})
    else:
        write_lines(listed(resolutions))
        for problem in loaded.problems:
            say(str(problem))
    return status_of(not has_errors(loaded.problems))


def main() -> None:
    """Run the command and exit."""
    run_and_exit(cli, "gen-tests")


if __name__ == "__main__":
    main()
