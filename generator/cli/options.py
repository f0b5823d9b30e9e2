"""The options that several commands share: one name, type and help text each."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

dataset_option = click.option(
    "--dataset",
    type=click.Path(path_type=Path),
    default=Path("."),
    metavar="DIR",
    help="Root of the dataset; the current directory if not given.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as JSON."
)
check_option = click.option(
    "--check", is_flag=True, help="Write nothing; exit 1 if a file is out of date."
)
force_option = click.option(
    "--force", is_flag=True, help="Overwrite files that a person edited."
)
notes_option = click.option(
    "--notes", is_flag=True, help="Show notes in text and github as well."
)
no_cache_option = click.option(
    "--no-cache",
    is_flag=True,
    hidden=True,
    expose_value=False,
    help="Accepted for old scripts: nothing is kept from one run to the next.",
)
trust_option = click.option(
    "--trust",
    is_flag=True,
    help="With --execute: run code that the screen of the sources rejects, and run "
    "where a layer of the sandbox is missing.",
)
dry_run_option = click.option(
    "--dry-run",
    is_flag=True,
    help="Print what would be sent and send nothing; this is the default.",
)
yes_option = click.option("--yes", is_flag=True, help="Send it.")


def _tolerance(
    context: click.Context, parameter: click.Parameter, value: float | None
) -> float | None:
    if value is not None and not (math.isfinite(value) and value >= 0.0):
        raise click.UsageError(f"--tolerance {value}: choose a number from 0 on.")
    return value


tolerance_option = click.option(
    "--tolerance",
    type=float,
    callback=_tolerance,
    metavar="X",
    help="Set atol and rtol of every comparison to X.",
)


def jobs_option(
    most: int | None = 64, default: int | None = None
) -> Callable[[Command], Command]:
    """Return --jobs, which allows up to `most` processes."""
    unset = "" if default else "; as many as there are cores if not given"
    return click.option(
        "--jobs",
        type=click.IntRange(1, most),
        default=default,
        show_default=default is not None,
        metavar="N",
        help=f"Processes to run in parallel{unset}.",
    )


executor_option = click.option(
    "--executor",
    default="local",
    show_default=True,
    metavar="local|ray|ray://HOST:PORT",
    help="Run on this machine, on the Ray cluster that it is part of, or on another.",
)


def fresh_option(*spellings: str) -> Callable[[Command], Command]:
    """Return --fresh; `spellings` are older names that a command still accepts."""
    return click.option(
        *("--fresh", *spellings, "fresh"),
        is_flag=True,
        help="Ignore earlier results and redo the work.",
    )


def repo_option(*, required: bool = True) -> Callable[[Command], Command]:
    """Return --repo, a dataset repository on the Hub."""
    return click.option(
        "--repo",
        required=required,
        metavar="OWNER/NAME",
        help="The dataset's repository on the Hub.",
    )


def pr_option(*, required: bool = False) -> Callable[[Command], Command]:
    """Return --pr, the number of a pull request."""
    return click.option(
        "--pr",
        type=click.IntRange(1),
        required=required,
        metavar="N",
        help="The number of the pull request.",
    )


def output_option(
    content: str, metavar: str, *spellings: str, **type_options: Any
) -> Callable[[Command], Command]:
    """Return --output; `content` is its help, `spellings` are names still accepted."""
    return click.option(
        *("--output", *spellings, "output"),
        type=click.Path(path_type=Path, **type_options),
        metavar=metavar,
        help=content,
    )


def choice_options(*, with_all: bool = True) -> Callable[[Command], Command]:
    """Return --op-type, --definition-name and, with `with_all`, --all.

    The command gets them as `op_types`, `names` and `everything`.
    """
    options = [
        click.option(
            *("--op-type", "op_types"),
            multiple=True,
            metavar="OP_TYPE",
            help="Choose the definitions of this op_type; may be repeated.",
        ),
        click.option(
            *("--definition-name", "names"),
            multiple=True,
            metavar="NAME",
            help="Choose this definition; may be repeated.",
        ),
    ]
    if with_all:
        options.append(
            click.option(
                "--all", "everything", is_flag=True, help="Choose all definitions."
            )
        )

    def add(command: Command) -> Command:
        # in the order in which stacked decorators apply: from the last to the first
        for option in reversed(options):
            command = option(command)
        return command

    return add
