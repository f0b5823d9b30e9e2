"""Choose definitions on a command line: the options that most commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from generator.cli.output import Failure

if TYPE_CHECKING:
    from generator.discover import DatasetFile, Discovered
    from generator.problems import Problem

Command = TypeVar("Command", bound=Callable[..., Any])

dataset_option = click.option(
    "--dataset",
    type=click.Path(path_type=Path),
    default=Path("."),
    metavar="DIR",
    help="Root of the dataset; the current directory if not given.",
)

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Processes side by side; as many as there are cores if not given.",
)


def choice_options(
    of_type: str, of_name: str, of_all: str = ""
) -> Callable[[Command], Command]:
    """Add --op-type and --definition-name to a command, and --all if `of_all` is given.

    It gets them as `op_types`, `names` and `everything`. The texts are those of --help,
    less that the first two may be repeated.
    """
    options = [
        click.option(
            "--op-type",
            "op_types",
            multiple=True,
            metavar="OP_TYPE",
            help=f"{of_type}; may be repeated.",
        ),
        click.option(
            "--definition-name",
            "names",
            multiple=True,
            metavar="NAME",
            help=f"{of_name}; may be repeated.",
        ),
    ]
    if of_all:
        options.append(
            click.option("--all", "everything", is_flag=True, help=f"{of_all}.")
        )

    def add(command: Command) -> Command:
        # as decorators do, from the last to the first
        for option in reversed(options):
            command = option(command)
        return command

    return add


def check_choice(
    verb: str, op_types: Sequence[str], names: Sequence[str], everything: bool
) -> None:
    """Raise click.UsageError where nothing is chosen, or everything and some of it."""
    if not (op_types or names or everything):
        raise click.UsageError(
            f"Say what to {verb}: --op-type, --definition-name, --all."
        )
    if everything and (op_types or names):
        raise click.UsageError(
            "--all leaves nothing to choose: drop the other options."
        )


def require_definitions(problems: Iterable[Problem]) -> None:
    """Raise Failure where discovery found no dataset, or nothing in it."""
    from generator.discover import NOTHING_THERE

    for problem in problems:
        if problem.rule in NOTHING_THERE:
            raise Failure(f"{problem.message} {problem.fix}")


def chosen_files(
    dataset: Path, op_types: Sequence[str], names: Sequence[str]
) -> tuple[Discovered, tuple[DatasetFile, ...]]:
    """Return what a dataset holds, and the definition files that were chosen.

    Raises Failure where there is no dataset, or nothing of the name.
    """
    from generator.discover import discover_definitions
    from generator.problems import Severity
    from generator.select import UnknownName, select

    found = discover_definitions(dataset)
    require_definitions(found.problems)
    if not found.files:
        # something is there, and nothing of it may be read
        worst = next(p for p in found.problems if p.severity is Severity.ERROR)
        raise Failure(f"{worst.file}: {worst.message} {worst.fix}")
    try:
        return found, select(found, op_types, names)
    except UnknownName as error:
        raise Failure(str(error)) from None
