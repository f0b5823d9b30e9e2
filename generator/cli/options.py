"""The options that several commands share: one name, one meaning, one help text.

Commands name them `options.dataset`, `options.jobs()` and the like.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from generator.cli.choose import Choice
from generator.problems import Failure
from generator.problems.messages import one_line, quote
from generator.reports import FORMATS

if TYPE_CHECKING:
    from generator.execution.cluster import RayExecutor
    from generator.execution.local import LocalExecutor

Decorator = Callable[[Any], Any]

flag = partial(click.option, is_flag=True)


def value(
    *names: str, what: str, of: str | Sequence[str] | click.ParamType[Any], **more: Any
) -> Decorator:
    """Return an option with a value and the help `what`, which shows its default.

    `of` is the metavar of a text, the words to choose from, or a type.
    """
    if isinstance(of, str):
        more["metavar"] = of
    else:
        more["type"] = of if isinstance(of, click.ParamType) else click.Choice(of)
    return click.option(*names, help=what, show_default="default" in more, **more)


several = partial(value, multiple=True)
path = partial(value, of=click.Path(path_type=Path), metavar="DIR")

dataset = click.option(
    "--dataset",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default=".",
    help="Root of the dataset; the current directory if not given.",
)
as_json = flag("--json", "as_json", help="Print the result as JSON.")
check = flag("--check", help="Write nothing; exit 1 if a file is out of date.")
force = flag("--force", help="Overwrite files that a person edited.")
notes = flag("--notes", help="Show notes in text and github as well.")
no_cache = flag(
    "--no-cache",
    hidden=True,
    expose_value=False,
    help="Accepted for old scripts: nothing is kept from one run to the next.",
)
op_type = several(
    *("--op-type", "op_types"),
    what="Choose the definitions of this op_type; may be repeated.",
    of="OP_TYPE",
)
_name = several(
    *("--definition-name", "names"),
    what="Choose this definition; may be repeated.",
    of="NAME",
)
_all = flag("--all", "everything", help="Choose all definitions.")
tests = path(
    "--tests",
    what="Folder of the rendered tests; tests/references in the dataset if not given.",
)
executor = value(
    "--executor",
    what="Run on this machine, on the Ray cluster that it is part of, or on another.",
    of="local|ray|ray://HOST:PORT",
    default="local",
)


def choice(command: Any, *, has_all: bool = True) -> Any:
    """Add --op-type, --definition-name, --all and --dataset: the command gets a Choice."""

    @wraps(command)
    def called(
        dataset: Path,
        op_types: tuple[str, ...],
        names: tuple[str, ...],
        everything: bool = False,
        **given: Any,
    ) -> Any:
        chosen = Choice(dataset, op_types, names, everything)
        return command(choice=chosen, **given)

    added = dataset(called)
    return op_type(_name(_all(added) if has_all else added))


part = partial(choice, has_all=False)
"""The same without --all: a command that takes all definitions if none is chosen."""


def send(command: Any) -> Any:
    """Add --dry-run and --yes; the command gets `yes`."""
    what = "Print what would be sent and send nothing; this is the default."
    dry_run = flag("--dry-run", expose_value=False, help=what)
    return dry_run(flag("--yes", help="Send it.")(command))


def execute(what: str) -> Decorator:
    """Return --execute, with its help, and --trust."""
    trust = flag(
        "--trust",
        help="With --execute: also run code that the check of its source rejects; it "
        "stays in the sandbox.",
    )
    return lambda command: flag("--execute", help=what)(trust(command))


def _tolerance(
    context: click.Context, parameter: click.Parameter, value: float | None
) -> float | None:
    if value is not None and not (math.isfinite(value) and value >= 0.0):
        raise click.UsageError(f"--tolerance {value}: choose a number from 0 on.")
    return value


tolerance = value(
    "--tolerance",
    what="Set atol and rtol of every comparison to X.",
    of=click.FLOAT,
    metavar="X",
    callback=_tolerance,
)


def _cores() -> int:
    from generator.validation.parallel import default_jobs

    return default_jobs()


def jobs(
    usual: int | Callable[[], int] = _cores, unset: str = "as many as there are cores"
) -> Decorator:
    """Return --jobs, the number of processes: `usual`, which `unset` describes."""
    return click.option(
        "--jobs",
        type=click.IntRange(1, 1024),
        default=usual,
        metavar="N",
        help=f"Processes to run in parallel; {unset} if not given.",
    )


def fresh(*spellings: str) -> Decorator:
    """Return --fresh; `spellings` are older names that a command still accepts."""
    what = "Ignore earlier results and redo the work."
    return flag("--fresh", *spellings, "fresh", help=what)


def _repo(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    from generator.hub.client import bad_repo

    if value is not None and (reason := bad_repo(value)):
        raise click.UsageError(f"{parameter.opts[0]} {quote(value)}: {reason}")
    return value


repo = partial(
    value, what="The dataset's repository on the Hub.", of="OWNER/NAME", callback=_repo
)
pr = partial(
    value,
    "--pr",
    what="The number of the pull request.",
    of=click.IntRange(1),
    metavar="N",
)


def output(what: str, metavar: str, *spellings: str, **more: Any) -> Decorator:
    """Return --output, a folder where `metavar` is DIR, else a file.

    `what` is its help, `spellings` are older names that a command still accepts.
    """
    kind = click.Path(path_type=Path, dir_okay=metavar == "DIR")
    names = ("--output", *spellings, "output")
    return value(*names, what=what, of=kind, metavar=metavar, **more)


def form(default: str = "text", formats: Sequence[str] = FORMATS) -> Decorator:
    """Return what adds --format and --json to a command, which gets them as `form`."""
    names = ("--format", "form")
    option = value(*names, what="How to print the result.", of=formats, default=default)
    as_json = flag(
        "--json", "form", flag_value="json", help="Print the result as JSON."
    )
    return lambda command: option(as_json(command))


def given(*names: str) -> list[str]:
    """Return those of the options that the command line has."""
    context = click.get_current_context()
    said = {
        name
        for parameter in context.command.params
        for name in parameter.opts
        if context.get_parameter_source(str(parameter.name))
        is ParameterSource.COMMANDLINE
    }
    return [name for name in names if name in said]


def one_of(*names: str) -> None:
    """Raise click.UsageError where the command line has more than one of the options."""
    if len(given(*names)) > 1:
        raise click.UsageError(f"Choose one of {_listed(names)}.")


def drop(why: str, *names: str) -> None:
    """Raise click.UsageError, with the reason, where one of the options is given."""
    if found := given(*names):
        raise click.UsageError(f"{why}: drop {_listed(found)}.")


def only_with(needed: str, *names: str) -> None:
    """Raise click.UsageError where an option is given without the one it needs."""
    if not given(needed) and (found := given(*names)):
        verb = "goes" if len(found) == 1 else "go"
        raise click.UsageError(f"{_listed(found)} {verb} with {needed}.")


def _listed(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def make_executor(
    name: str, jobs: int, *, imports: str = "", gpus: float = 0.0
) -> LocalExecutor | RayExecutor:
    """Return an executor that runs up to `jobs` tasks at a time.

    `imports` names the folder of tasks that import modules from it; on a cluster each
    task has `gpus` GPUs. Raises Failure where a cluster can't be used.
    """
    if name == "local":
        from generator.execution.local import LocalExecutor

        return LocalExecutor(jobs, imports=imports)
    if name != "ray" and not name.startswith("ray://"):
        raise click.UsageError(
            f"--executor {quote(name)}: choose local, ray or ray://HOST:PORT."
        )
    from generator.execution.cluster import NoCluster, RayExecutor

    # A cluster runs as many tasks as it has room for, unless --jobs limits them; with
    # `gpus`, the share of a GPU that each task reserves is the limit.
    is_limited = given("--jobs") and not gpus
    most = jobs if is_limited else None
    try:
        return RayExecutor(name, most, imports=imports, gpus=gpus)
    except NoCluster as error:
        raise Failure(f"--executor {name}: {one_line(str(error))}") from error
