"""Output shared by all commands: data to stdout, messages to stderr, exit status."""

from __future__ import annotations

import atexit
import codecs
import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from generator.cli.colours import coloured, is_coloured
from generator.problems import Failure
from generator.problems.messages import one_line
from generator.reports import printed
from generator.reports.report import Report, Status

EXIT_FINE = 0
EXIT_PROBLEMS = 1
EXIT_USAGE = 2
EXIT_NEEDS_GPU = 3
EXIT_INTERRUPTED = 130

_PROBE_BYTES = 1 << 20
_PLAIN = "generator-plain"

_ENDING = (signal.SIGTERM, signal.SIGHUP)

STATUSES = {
    Status.PASSED: EXIT_FINE,
    Status.FAILED: EXIT_PROBLEMS,
    Status.OPEN: EXIT_NEEDS_GPU,
}
"""Status of a report → exit status."""


def write(text: str) -> None:
    """Write data to stdout.

    A reader that goes away (`| head`) ends the output, not the command: the exit
    status stays the verdict's. Raises OSError where stdout can't be written to.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # The interpreter flushes once more at exit; give it somewhere to write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise OSError(error.errno, error.strerror, "stdout") from error


def write_json(value: Any) -> None:
    """Write a JSON value to stdout."""
    # GitHub's runner takes `##[` for a command
    text = json.dumps(value, indent=2).replace("##[", "##\\u005b")
    write(f"{text}\n")


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to stdout; what a dataset says can't break one."""
    for line in lines:
        write(f"{one_line(line, 1000)}\n")


def say(text: str) -> None:
    """Write one line of talk to stderr."""
    # Nobody is left to be told where stderr is gone too.
    with suppress(OSError):
        sys.stderr.write(one_line(text, 1000) + "\n")
        sys.stderr.flush()


def say_first(lines: Iterable[object], most: int, noun: str) -> None:
    """Say the first lines, and how many there are beside them; `noun` is in the plural."""
    listed = [str(line) for line in lines]
    for line in listed[:most]:
        say(line)
    if len(listed) > most:
        say(f"and {len(listed) - most} more {noun}")


def write_pieces(pieces: Iterable[str], form: str) -> None:
    """Write the pieces of a report to stdout; on a terminal verdicts are in colour."""
    paint = coloured if form == "text" and is_coloured() else str
    for text in pieces:
        write(paint(text))


def show(report: Report, form: str) -> int:
    """Write a report to stdout and return the exit status that it asks for."""
    write_pieces(printed(report, form), form)
    conclusion = report.conclude()
    if report.is_said:
        say(conclusion.summary)
    return STATUSES[conclusion.status]


def status_of(fine: object) -> int:
    """Return the exit status of what is fine or not."""
    return EXIT_FINE if fine else EXIT_PROBLEMS


def write_files(root: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a folder, each as a whole."""
    from generator.dataset.atomic_write import write_below
    from generator.dataset.lock import locked

    with locked(root):
        for path, content in files.items():
            write_below(root, path, content)


def check_writable(root: Path) -> None:
    """Write to a folder and remove that again, before long work. Raises OSError."""
    from tempfile import NamedTemporaryFile

    try:
        root.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=root, prefix=".writable-") as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        # a full disk names no file, and nobody knows the temporary one
        is_file = isinstance(error, (FileExistsError, NotADirectoryError))
        why = "a file, where a folder is wanted" if is_file else error.strerror
        raise OSError(error.errno, why, str(root)) from error


def drifted(root: Path, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that have another content below a folder, or are not there."""
    from generator.dataset.file_reading import read_bytes

    def there(path: str) -> bytes | None:
        with suppress(FileNotFoundError):
            return read_bytes(root, path)
        return None

    return {path: new for path, new in files.items() if there(path) != new}


@contextmanager
def progress(text: str) -> Iterator[None]:
    """Show on a terminal's stderr that something long is under way; else nothing."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


def say_on_terminal(text: str) -> None:
    """Write one line of talk to stderr if a person sees it as it comes."""
    if sys.stderr.isatty():
        say(text)


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Return what a terminal shows that lacks characters: lines of `-`, else escapes."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end].replace("\u2500", "-")
    return text.encode("ascii", "backslashreplace").decode("ascii"), error.end


codecs.register_error(_PLAIN, _plain)


def run(command: click.Command, program: str) -> int:
    """Run a command and return its exit status; no exception of its own escapes."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # the caller closed it (`>&-`): nobody reads, and no file gets its number
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_PLAIN)
    end_in_order()
    try:
        os.getcwd()
    except FileNotFoundError:
        say("Error: The current folder was removed: change to one that is there.")
        return EXIT_USAGE
    try:
        status = command.main(prog_name=program, standalone_mode=False)
        return status if isinstance(status, int) else EXIT_FINE
    except click.Abort:
        say("Interrupted.")
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        if context is not None:
            say(context.get_usage().splitlines()[0])
        message = " ".join(error.format_message().split())
        say(f"Error: {message}{_hint(message, context)}")
    except Failure as error:
        say(f"Error: {error}")
    except OSError as error:
        where = f"{error.filename2 or error.filename}: " if error.filename else ""
        say(f"Error: {where}{error.strerror or error}")
    return EXIT_USAGE


_CHOICES = ("--dataset", "--op-type", "--definition-name", "--all", "--base")


def _hint(message: str, context: click.Context | None) -> str:
    """Return which options choose, where a person gave the name or folder alone."""
    if context is None or not message.startswith("Got unexpected extra argument"):
        return ""
    known = {name for option in context.command.params for name in option.opts}
    options = ", ".join(name for name in _CHOICES if name in known)
    return f". What to work on is chosen by {options}." if options else ""


def end_in_order() -> None:
    """Treat being ended by a signal as Ctrl-C: temporary folders and processes go.

    What the caller ignores (`nohup`) stays ignored. A second signal does not disturb what
    the first one has begun.
    """

    def end(number: int, frame: object) -> None:
        for other in _ENDING:
            if signal.getsignal(other) is end:
                signal.signal(other, signal.SIG_IGN)
        raise KeyboardInterrupt

    # only the main thread may; elsewhere this is a function that a program calls
    with suppress(ValueError):
        for number in _ENDING:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, end)


def run_and_exit(command: click.Command, program: str) -> None:
    """Run a command and exit with its status."""
    status = run(command, program)
    if "torch" in sys.modules:
        _leave(status)
    sys.exit(status)


def _leave(status: int) -> None:
    """Exit without taking apart all that torch made, which takes half a second.

    Returns where something is left to do that only an ordinary exit does.
    """
    if threading.active_count() > 1:
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return
    atexit._run_exitfuncs()
    os._exit(status)


def seek_cycles_rarely() -> None:
    """Look for cycles of objects rarely while a command runs, and not at the exit.

    For commands that read or make a whole dataset: JSON values, syntax trees and texts
    have no cycles, and to look for some takes up to a third of the time.
    """
    usual = gc.get_threshold()
    gc.set_threshold(200_000, 20, 100)
    click.get_current_context().call_on_close(lambda: gc.set_threshold(*usual))
    atexit.register(gc.freeze)


def require_modules(who: str, modules: Iterable[str], extra: str = "execute") -> None:
    """Raise Failure where a module is not installed; `who` is `An audit needs`."""
    from importlib.util import find_spec

    absent = [module for module in modules if find_spec(module) is None]
    if absent:
        names = ", ".join(absent)
        raise Failure(f"{who} {names}: pip install 'gen-tests[{extra}]'.")


def numbered(
    results: Iterable[tuple[int, Any, bool]],
    count: int,
    failed: str,
    describe: Callable[[Any], str],
) -> list[Any]:
    """Print one numbered line for each result as it comes; return them by their places.

    `said` describes a result without an error; `failed` precedes an error.
    """
    by_place = {}
    for place, result, is_cached in results:
        by_place[place] = result
        how = "from the last audit" if is_cached else f"{result.seconds:.1f} s"
        what = f"{failed}: {result.error}" if result.error else describe(result) + how
        name = one_line(result.definition, 100)
        say(f"{len(by_place)}/{count} {name}: {what}")
    return [by_place[place] for place in range(count)]
