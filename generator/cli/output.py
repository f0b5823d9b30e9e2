"""What every command does the same way: data to stdout, talk to stderr, exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, TypeVar

import click

from generator.ops.registry import BadOpType
from generator.problems.messages import one_line
from generator.reports import FORMATS, printed
from generator.reports.report import Report, Status

Command = TypeVar("Command", bound=Callable[..., Any])

EXIT_FINE = 0
EXIT_PROBLEMS = 1
EXIT_USAGE = 2
EXIT_NEEDS_GPU = 3
EXIT_INTERRUPTED = 130

STATUSES = {
    Status.PASSED: EXIT_FINE,
    Status.FAILED: EXIT_PROBLEMS,
    Status.OPEN: EXIT_NEEDS_GPU,
}
"""Status of a report → exit status."""


class Failure(click.ClickException):
    """End a command with one line on stderr and exit status 2."""

    exit_code = EXIT_USAGE

    def show(self, file: object = None) -> None:
        """Print the line."""
        say(f"Error: {self.message}")


def write(text: str) -> None:
    """Write data to stdout.

    A reader that goes away (`| head`) ends the output, not the command: the exit
    status stays the verdict's. Raises OSError where stdout can't be written to.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes once more at exit; give it somewhere to write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str) -> None:
    """Write one line of talk to stderr."""
    # Nobody is left to be told where stderr is gone too.
    _write_quietly(sys.stderr, one_line(text, 1000) + "\n")


def format_option(
    default: str = "text", formats: Iterable[str] = FORMATS
) -> Callable[[Command], Command]:
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


def show(report: Report, form: str) -> int:
    """Write a report to stdout and return the exit status that it asks for."""
    for text in printed(report, form):
        write(text)
    conclusion = report.conclude()
    if report.is_said:
        say(conclusion.summary)
    return STATUSES[conclusion.status]


@contextmanager
def progress(text: str) -> Iterator[None]:
    """Show on a terminal's stderr that something long is under way; else nothing."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


def run(command: click.Command, program: str) -> int:
    """Run a command and return its exit status; no exception of its own escapes."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # the caller closed it (`>&-`): nobody reads, and no file gets its number
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal that can't show a character shows its escape.
            stream.reconfigure(errors="backslashreplace")
    try:
        status = command.main(prog_name=program, standalone_mode=False)
        return status if isinstance(status, int) else EXIT_FINE
    except click.Abort:
        say("Interrupted.")
        return EXIT_INTERRUPTED
    except click.UsageError as error:
        if error.ctx is not None:
            say(error.ctx.get_usage().splitlines()[0])
        say(f"Error: {error.format_message()}")
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BadOpType as error:
        say(f"Error: {error}")
        return EXIT_USAGE
    except OSError as error:
        what = error.strerror or str(error)
        named = error.filename is not None
        say(f"Error: {error.filename}: {what}" if named else f"Error: {what}")
        return EXIT_USAGE


def _write_quietly(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        pass


def require_modules(who: str, modules: Iterable[str]) -> None:
    """Raise Failure where a module is not installed; `who` is `An audit needs`."""
    from importlib.util import find_spec

    for module in modules:
        if find_spec(module) is None:
            raise Failure(f"{who} {module}: pip install {module}.")


def numbered(
    count: int, failed: str, said: Callable[[Any], str]
) -> Callable[[Any, bool], None]:
    """Return a progress callback that prints one numbered line for each result.

    `said` describes a result without an error; `failed` precedes an error.
    """
    numbers = iter(range(1, count + 1))

    def tell(result: Any, was_kept: bool) -> None:
        how = "from the last audit" if was_kept else f"{result.seconds:.1f} s"
        what = f"{failed}: {result.error}" if result.error else said(result) + how
        say(f"{next(numbers)}/{count} {one_line(result.definition, 100)}: {what}")

    return tell
