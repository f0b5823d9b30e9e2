"""The options that several commands share: one name, one meaning, one help text."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from generator.cli.choose import Choice
from generator.problems.messages import quote
from generator.reports import FORMATS

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]


def _together(
    join: Callable[..., dict[str, Any]], names: Iterable[str], *options: Decorator[Any]
) -> Decorator[Any]:
    """Return what adds options to a command, which gets what `join` makes of them.

    `join` gets the values of the options `names`, and returns what the command gets.
    """

    def add(command: Any) -> Any:
        @wraps(command)
        def joined(**given: Any) -> Any:
            own = {name: given.pop(name) for name in names}
            return command(**given, **join(**own))

        # in the order in which stacked decorators apply: from the last to the first
        for option in reversed(options):
            joined = option(joined)
        return joined

    return add


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

_OP_TYPE = click.option(
    *("--op-type", "op_types"),
    multiple=True,
    metavar="OP_TYPE",
    help="Choose the definitions of this op_type; may be repeated.",
)
_NAME = click.option(
    *("--definition-name", "names"),
    multiple=True,
    metavar="NAME",
    help="Choose this definition; may be repeated.",
)
_ALL = click.option("--all", "everything", is_flag=True, help="Choose all definitions.")
_CHOICE = ("dataset", "op_types", "names")


def _choice(*given: Any, **named: Any) -> dict[str, Any]:
    return {"choice": Choice(*given, **named)}


choice_options = _together(
    _choice, (*_CHOICE, "everything"), _OP_TYPE, _NAME, _ALL, dataset_option
)
"""--op-type, --definition-name, --all and --dataset: the command gets a Choice."""

part_options = _together(_choice, _CHOICE, dataset_option, _OP_TYPE, _NAME)
"""The same without --all: a command that takes all definitions if none is chosen."""


def _sent(dry_run: bool, yes: bool) -> dict[str, bool]:
    if dry_run and yes:
        raise click.UsageError("Choose one of --dry-run and --yes.")
    return {"yes": yes}


send_options = _together(
    _sent,
    ("dry_run", "yes"),
    click.option(
        "--dry-run",
        is_flag=True,
        help="Print what would be sent and send nothing; this is the default.",
    ),
    click.option("--yes", is_flag=True, help="Send it."),
)
"""--dry-run and --yes: the command gets `yes`."""


def _executed(execute: bool, trust: bool) -> dict[str, bool]:
    if trust and not execute:
        raise click.UsageError("--trust goes with --execute.")
    return {"execute": execute, "trust": trust}


def execute_options(what: str) -> Decorator[Any]:
    """Return --execute, with its help, and --trust."""
    return _together(
        _executed,
        ("execute", "trust"),
        click.option("--execute", is_flag=True, help=what),
        click.option(
            "--trust",
            is_flag=True,
            help="With --execute: run code that the screen of the sources rejects, and "
            "run where a layer of the sandbox is missing.",
        ),
    )


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


def _jobs(context: click.Context, parameter: click.Parameter, value: int | None) -> int:
    from generator.validation.parallel import default_jobs

    return value or default_jobs()


def jobs_option(most: int | None = 64, default: int | None = None) -> Decorator[Any]:
    """Return --jobs, which allows up to `most` processes; the command gets a number."""
    unset = "" if default else "; as many as there are cores if not given"
    return click.option(
        "--jobs",
        type=click.IntRange(1, most),
        callback=_jobs,
        default=default,
        show_default=default is not None,
        metavar="N",
        help=f"Processes to run in parallel{unset}.",
    )


def fresh_option(*spellings: str) -> Decorator[Any]:
    """Return --fresh; `spellings` are older names that a command still accepts."""
    return click.option(
        *("--fresh", *spellings, "fresh"),
        is_flag=True,
        help="Ignore earlier results and redo the work.",
    )


def _repo(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    from generator.hub.names import bad_repo

    if value is not None and (reason := bad_repo(value)):
        raise click.UsageError(f"{parameter.opts[0]} {quote(value)}: {reason}")
    return value


def repo_option(
    name: str = "--repo",
    what: str = "The dataset's repository on the Hub.",
    *,
    required: bool = True,
) -> Decorator[Any]:
    """Return --repo, or an option of another name: a dataset repository on the Hub."""
    return click.option(
        name, required=required, callback=_repo, metavar="OWNER/NAME", help=what
    )


def pr_option(*, required: bool = False) -> Decorator[Any]:
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
) -> Decorator[Any]:
    """Return --output; `content` is its help, `spellings` are names still accepted."""
    return click.option(
        *("--output", *spellings, "output"),
        type=click.Path(path_type=Path, **type_options),
        metavar=metavar,
        help=content,
    )


def format_option(
    default: str = "text", formats: Iterable[str] = FORMATS
) -> Decorator[Any]:
    """Return what adds --format and --json to a command, which gets them as `form`."""
    option = click.option(
        "--format",
        "form",
        type=click.Choice(list(formats)),
        default=default,
        show_default=True,
        help="How to print what was found.",
    )
    as_json = click.option(
        "--json", "form", flag_value="json", help="Print the result as JSON."
    )
    return lambda command: option(as_json(command))


def prefix_of(dataset: Path) -> str:
    """Return the path from the current directory to a dataset below it, else empty."""
    path = os.path.relpath(dataset).replace(os.sep, "/")
    return "" if path == "." or path.startswith("..") else f"{path}/"
