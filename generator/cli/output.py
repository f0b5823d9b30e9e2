"""What every command does the same way: data to stdout, talk to stderr, exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

import click

from generator.wording import one_line

EXIT_FINE = 0
EXIT_PROBLEMS = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


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


class Numbered:
    """Say of each of so many definitions what became of it, as it comes."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._done = 0

    def say(self, definition: str, what: str) -> None:
        self._done += 1
        say(f"{self._done}/{self._count} {one_line(definition, 100)}: {what}")
