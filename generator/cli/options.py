"""The options that several commands share: one name, one meaning, one help text.

Commands name them `options.dataset`, `options.jobs()` and the like.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from generator.cli.choose import Choice
from generator.problems.messages import quote
from generator.reports import FORMATS

Decorator = Callable[[Any], Any]
_PATH = click.Path(path_type=Path)


def _together(
    join: Callable[..., dict[str, Any]], names: Iterable[str], *added: Decorator
) -> Decorator:
    """Return what adds options to a command, which gets what `join` makes of them.

    `join` gets the values of the options `names`, and returns what the command gets.
    """

    def add(command: Any) -> Any:
        @wraps(command)
        def joined(**given: Any) -> Any:
            own = {name: given.pop(name) for name in names}
            return command(**given, **join(**own))

        # in the order in which stacked decorators apply: from the last to the first
        for option in reversed(added):
            joined = option(joined)
        return joined

    return add


_flag = partial(click.option, is_flag=True)

dataset = click.option(
    "--dataset",
    type=_PATH,
    default=Path("."),
    metavar="DIR",
    help="Root of the dataset; the current directory if not given.",
)
as_json = _flag("--json", "as_json", help="Print the result as JSON.")
check = _flag("--check", help="Write nothing; exit 1 if a file is out of date.")
force = _flag("--force", help="Overwrite files that a person edited.")
notes = _flag("--notes", help="Show notes in text and github as well.")
no_cache = _flag(
    "--no-cache",
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
_ALL = _flag("--all", "everything", help="Choose all definitions.")


def _choice(**named: Any) -> dict[str, Any]:
    return {"choice": Choice(**named)}


choice = _together(
    *(_choice, ("dataset", "op_types", "names", "everything")),
    *(_OP_TYPE, _NAME, _ALL, dataset),
)
"""--op-type, --definition-name, --all and --dataset: the command gets a Choice."""

part = _together(_choice, ("dataset", "op_types", "names"), dataset, _OP_TYPE, _NAME)
"""The same without --all: a command that takes all definitions if none is chosen."""


def _sent(dry_run: bool, yes: bool) -> dict[str, bool]:
    if dry_run and yes:
        raise click.UsageError("Choose one of --dry-run and --yes.")
    return {"yes": yes}


send = _together(
    *(_sent, ("dry_run", "yes")),
    _flag(
        "--dry-run",
        help="Print what would be sent and send nothing; this is the default.",
    ),
    _flag("--yes", help="Send it."),
)
"""--dry-run and --yes: the command gets `yes`."""


def _executed(execute: bool, trust: bool) -> dict[str, bool]:
    if trust and not execute:
        raise click.UsageError("--trust goes with --execute.")
    return {"execute": execute, "trust": trust}


def execute(what: str) -> Decorator:
    """Return --execute, with its help, and --trust."""
    trust = _flag(
        "--trust",
        help="With --execute: run code that the screen of the sources rejects, all the "
        "same in the sandbox.",
    )
    names = ("execute", "trust")
    return _together(_executed, names, _flag("--execute", help=what), trust)


def _tolerance(
    context: click.Context, parameter: click.Parameter, value: float | None
) -> float | None:
    if value is not None and not (math.isfinite(value) and value >= 0.0):
        raise click.UsageError(f"--tolerance {value}: choose a number from 0 on.")
    return value


tolerance = click.option(
    "--tolerance",
    type=float,
    callback=_tolerance,
    metavar="X",
    help="Set atol and rtol of every comparison to X.",
)


def _cores() -> int:
    from generator.validation.parallel import default_jobs

    return default_jobs()


def jobs(
    most: int | None = 64,
    default: int | None = None,
    unset: str = "as many as there are cores",
    usual: Callable[[], int] = _cores,
) -> Decorator:
    """Return --jobs, which allows up to `most` processes; the command gets a number.

    Where neither the command line nor `default` says one it is `usual()`, which `unset`
    describes.
    """
    unset = "" if default else f"; {unset} if not given"
    return click.option(
        "--jobs",
        type=click.IntRange(1, most),
        callback=lambda context, parameter, value: value or usual(),
        default=default,
        show_default=default is not None,
        metavar="N",
        help=f"Processes to run in parallel{unset}.",
    )


executor = click.option(
    "--executor",
    default="local",
    show_default=True,
    metavar="local|ray|ray://HOST:PORT",
    help="Run on this machine, on the Ray cluster that it is part of, or on another.",
)


def fresh(*spellings: str) -> Decorator:
    """Return --fresh; `spellings` are older names that a command still accepts."""
    what = "Ignore earlier results and redo the work."
    return _flag("--fresh", *spellings, "fresh", help=what)


def _repo(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    from generator.hub.names import bad_repo

    if value is not None and (reason := bad_repo(value)):
        raise click.UsageError(f"{parameter.opts[0]} {quote(value)}: {reason}")
    return value


def repo(
    name: str = "--repo",
    what: str = "The dataset's repository on the Hub.",
    *,
    required: bool = True,
) -> Decorator:
    """Return --repo, or an option of another name: a dataset repository on the Hub."""
    return click.option(
        name, required=required, callback=_repo, metavar="OWNER/NAME", help=what
    )


def pr(*, required: bool = False) -> Decorator:
    """Return --pr, the number of a pull request."""
    what = "The number of the pull request."
    number = click.IntRange(1)
    return click.option("--pr", type=number, required=required, metavar="N", help=what)


def path(*names: str, metavar: str = "DIR", **more: Any) -> Decorator:
    """Return an option whose value is a path."""
    return click.option(*names, **{"type": _PATH, "metavar": metavar, **more})


def output(what: str, metavar: str, *spellings: str, **more: Any) -> Decorator:
    """Return --output; `what` is its help, `spellings` are names still accepted."""
    names = ("--output", *spellings, "output")
    return path(*names, metavar=metavar, help=what, **more)


def output_file(what: str, metavar: str) -> Decorator:
    """Return an --output that can't be a folder."""
    return output(what, metavar, type=click.Path(path_type=Path, dir_okay=False))


def form(default: str = "text", formats: Iterable[str] = FORMATS) -> Decorator:
    """Return what adds --format and --json to a command, which gets them as `form`."""
    option = click.option(
        *("--format", "form"),
        type=click.Choice(list(formats)),
        default=default,
        show_default=True,
        help="How to print what was found.",
    )
    as_json = click.option(
        "--json", "form", flag_value="json", help="Print the result as JSON."
    )
    return lambda command: option(as_json(command))
