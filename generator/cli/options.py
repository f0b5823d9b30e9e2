"""The options of commands: the defaults of a command's parameters declare them.

What several commands share has one name, one meaning and one help text; commands name
it `options.dataset`, `options.jobs()` and the like.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial, wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

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
Makes = Callable[[Callable[..., int]], click.Command]


def command(name: str | None = None, **settings: Any) -> Makes:
    """Make a command of a function: each parameter's default declares what it is given.

    A declaration is a function that gets the parameter's name.
    """

    def made(function: Callable[..., int]) -> click.Command:
        called: Any = function
        for parameter in reversed([*signature(function).parameters.values()]):
            called = parameter.default(parameter.name)(called)
        build: Decorator = click.command(name, **settings)
        return cast("click.Command", build(called))

    return made


class Seconds(click.FloatRange):
    """Seconds of a range. NaN is none, which click's own range lets through."""

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Return the number; raises BadParameter."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is no number of seconds.", param, ctx)
        return number


def option(what: str, *names: str, **more: Any) -> Any:
    """Declare an option with the help `what`; its name is the parameter's if not given."""

    def declared(parameter: str) -> Decorator:
        spelled = names or (f"--{parameter.replace('_', '-')}",)
        return click.option(*spelled, parameter, help=what, **more)

    return declared


def value(
    what: str, of: str | Sequence[str] | click.ParamType[Any], *names: str, **more: Any
) -> Any:
    """Declare an option with a value, whose help shows its default.

    `of` is the metavar of a text, the words to choose from, or a type.
    """
    if isinstance(of, str):
        more["metavar"] = of
    else:
        more["type"] = of if isinstance(of, click.ParamType) else click.Choice(of)
    return option(what, *names, show_default="default" in more, **more)


def argument(**more: Any) -> Any:
    """Declare an argument."""
    return lambda parameter: click.argument(parameter, **more)


def path(what: str, *names: str, metavar: str = "DIR", **more: Any) -> Any:
    """Declare an option with a path."""
    kind = click.Path(path_type=Path)
    return value(what, kind, *names, metavar=metavar, **more)


flag = partial(option, is_flag=True)
several = partial(value, multiple=True)


def _root(
    context: click.Context, parameter: click.Parameter, value: Path | None
) -> Path:
    """Return the path that was given, else that of the dataset around this folder."""
    if value is not None:
        return value
    from generator.dataset.paths import find_root

    here = Path.cwd()
    return Path(os.path.relpath(find_root(here), here))


def _completed(of_op_types: bool) -> Callable[..., list[str]]:
    """Return what a shell asks for the op_types or the definitions that begin so."""

    def complete(
        context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[str]:
        from generator.dataset.paths import discover_definitions

        # nothing may be printed into the line that a person types
        with suppress(OSError, Failure):
            root = context.params.get("dataset") or _root(context, parameter, None)
            there = discover_definitions(Path(root))
            names = there.op_types if of_op_types else [f.name for f in there.files]
            return sorted(name for name in names if name.startswith(incomplete))
        return []

    return complete


dataset = option(
    "Root of the dataset; the current folder if not given, or the nearest above it that "
    "has definitions/.",
    type=click.Path(path_type=Path),
    metavar="DIR",
    callback=_root,
)
as_json = flag("Print the result as JSON.", "--json")
check = flag("Write nothing; exit 1 if a file is out of date.")
force = flag("Overwrite files that a person edited.")
notes = flag("Show notes in text and github as well.")
fresh = flag("Ignore earlier results and redo the work.")
op_type = several(
    "Choose the definitions of this op_type; may be repeated.",
    "OP_TYPE",
    "--op-type",
    shell_complete=_completed(of_op_types=True),
)
_name = several(
    "Choose this definition; may be repeated.",
    "NAME",
    "--definition-name",
    shell_complete=_completed(of_op_types=False),
)
_all = flag("Choose all definitions.", "--all")
tests = path(
    "Folder of the rendered tests; tests/references in the dataset if not given."
)
keep_failures = path(
    "Write inputs, expected and returned values of what fails there, and the command that "
    "runs each again."
)
sanitize = several(
    "Run small cases of what is right under compute-sanitizer: memcheck, racecheck, "
    "initcheck, synccheck, or all; several with commas. Each takes up to 300 s.",
    "TOOL,...",
    "--sanitize",
)
executor = value(
    "Run on this machine, on the Ray cluster that it is part of, or on another.",
    "local|ray|ray://HOST:PORT",
    default="local",
)
trust = flag(
    "With --execute: also run code that the check of its source rejects; it stays in the "
    "sandbox."
)


def _choice(parameter: str, *, has_all: bool = True) -> Decorator:
    """Declare --op-type, --definition-name, --all and --dataset, which give a Choice."""

    def added(command: Any) -> Any:
        @wraps(command)
        def called(
            dataset: Path,
            op_types: tuple[str, ...],
            names: tuple[str, ...],
            everything: bool = False,
            **given: Any,
        ) -> Any:
            given[parameter] = Choice(dataset, op_types, names, everything)
            return command(**given)

        decorated = dataset("dataset")(called)
        decorated = _all("everything")(decorated) if has_all else decorated
        return op_type("op_types")(_name("names")(decorated))

    return added


choice: Any = _choice
part: Any = partial(_choice, has_all=False)
"""The same without --all: a command that takes all definitions if none is chosen."""


def _send(parameter: str) -> Decorator:
    what = "Print what would be sent and send nothing; this is the default."
    dry_run = flag(what, expose_value=False)("dry_run")
    return lambda command: dry_run(flag("Send it.", "--yes")(parameter)(command))


send: Any = _send
"""--dry-run and --yes, whose value the command gets."""


def _tolerance(
    context: click.Context, parameter: click.Parameter, value: float | None
) -> float | None:
    if value is not None and not (math.isfinite(value) and value >= 0.0):
        raise click.UsageError(f"--tolerance {value}: choose a number from 0 on.")
    return value


tolerance = value(
    "Set atol and rtol of every comparison to X.",
    click.FLOAT,
    metavar="X",
    callback=_tolerance,
)


def _cores() -> int:
    from generator.execution.cores import usable_cores

    return usable_cores()


def jobs(
    usual: int | Callable[[], int] = _cores, unset: str = "as many as there are cores"
) -> Any:
    """Declare --jobs, the number of processes: `usual`, which `unset` describes."""
    what = f"Processes to run in parallel; {unset} if not given."
    return option(what, type=click.IntRange(1, 1024), default=usual, metavar="N")


def _repo(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    if value is not None:
        from generator.hub.client import bad_repo

        if reason := bad_repo(value):
            raise click.UsageError(f"{parameter.opts[0]} {quote(value)}: {reason}")
    return value


def repo(what: str = "The dataset's repository on the Hub.", **more: Any) -> Any:
    """Declare an option with the name of a repository."""
    return value(what, "OWNER/NAME", callback=_repo, **more)


pr = partial(value, "The number of the pull request.", click.IntRange(1), metavar="N")


def output(what: str, metavar: str, **more: Any) -> Any:
    """Declare --output, a folder where `metavar` is DIR, else a file."""
    kind = _NamedPath(path_type=Path, dir_okay=metavar == "DIR")
    return value(what, kind, "--output", metavar=metavar, **more)


class _NamedPath(click.Path):
    """A path that is not empty: an unset variable would name the current folder."""

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Return the path of a value."""
        if value == "":
            self.fail("the path is empty: is a variable unset?", param, ctx)
        return super().convert(value, param, ctx)


def form(default: str = "text", formats: Sequence[str] = FORMATS) -> Any:
    """Declare --format and --json, one value."""
    what = "How to print the result."
    option = value(what, formats, "--format", default=default)
    as_json = flag("Print the result as JSON.", "--json", flag_value="json")
    return lambda parameter: (
        lambda function: option(parameter)(as_json(parameter)(function))
    )


def given(*names: str) -> list[str]:
    """Return those of the options that the command line has."""
    context = click.get_current_context()
    given_options = {
        name
        for parameter in context.command.params
        for name in parameter.opts
        if context.get_parameter_source(str(parameter.name))
        is ParameterSource.COMMANDLINE
    }
    return [name for name in names if name in given_options]


def one_of(*names: str) -> None:
    """Raise click.UsageError where the command line has more than one of the options."""
    if len(given(*names)) > 1:
        raise click.UsageError(f"Choose one of {_listed(names)}.")


def drop(why: str, *names: str) -> None:
    """Raise click.UsageError, with the reason, where one of the options is given."""
    if useless := given(*names):
        raise click.UsageError(f"{why}: drop {_listed(useless)}.")


def only_with(needed: str, *names: str) -> None:
    """Raise click.UsageError where an option is given without the one it needs."""
    if not given(needed) and (dependent := given(*names)):
        verb = "goes" if len(dependent) == 1 else "go"
        raise click.UsageError(f"{_listed(dependent)} {verb} with {needed}.")


def _listed(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def make_executor(
    name: str,
    jobs: int,
    *,
    imports: str = "",
    gpus: float = 0.0,
    begins: str = "",
    large_pages: bool = True,
) -> LocalExecutor | RayExecutor:
    """Return an executor that runs up to `jobs` tasks at a time.

    `imports` names the folder of tasks that import modules from it; on a cluster each
    task has `gpus` GPUs. One of this machine imports torch and the module that
    `begins` names from now on, and has `large_pages` for tensors or none.
    Raises Failure where a cluster can't be used.
    """
    if name == "local":
        from generator.execution.local import LocalExecutor

        local = LocalExecutor(jobs, imports=imports, large_pages=large_pages)
        if begins:
            local.begin(begins)
            # where the command ends before it runs anything
            click.get_current_context().call_on_close(local.close)
        return local
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
