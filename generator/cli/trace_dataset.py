"""The command `trace-dataset`: check, review and publish a dataset."""

from __future__ import annotations

import sys
from collections import UserDict
from functools import partial
from importlib import import_module
from pathlib import Path

import click

from generator import __version__
from generator.cli import options
from generator.cli.choose import Choice
from generator.cli.output import (
    EXIT_FINE,
    EXIT_USAGE,
    progress,
    run_and_exit,
    status_of,
    write_json,
    write_lines,
)

_NAMES = (
    *("audit", "card", "certify", "comment", "evaluate", "export", "import", "mcp"),
    *("model", "parity", "pull", "push", "record", "replay", "review", "rules"),
    *("traces", "validate", "verify", "warm"),
)
"""The commands that are in modules of `generator.cli`."""
_PLACES = {"import": ("import_", "import_"), "export": ("import_", "export")}
"""The module and the function of commands that have not their own name."""


class _Commands(UserDict[str, click.Command | None]):
    """The commands by name; a module is imported when its command is asked for.

    All of them take 30 ms.
    """

    def __getitem__(self, name: str) -> click.Command:
        command = self.data[name]
        if command is None:
            module, function = _PLACES.get(name, (name, name))
            functions = vars(import_module(f"generator.cli.{module}"))
            command = self.data[name] = functions[function]
        return command


@click.group(
    commands=_Commands(dict.fromkeys(_NAMES)),
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> int:
    """Check, review and publish a trace dataset.

    Results go to stdout, messages to stderr. Exit status: 0 fine, 1 problems found,
    2 wrong usage or unreadable input.
    """
    if context.invoked_subcommand is None:
        # a name alone asks what there is
        sys.stderr.write(f"{context.get_help()}\n")
        return EXIT_USAGE
    return EXIT_FINE


@options.command()
def doctor(
    dataset: Path = options.dataset,
    as_json: bool = options.as_json,
) -> int:
    """Say what this machine can test, and what to install.

    For each op_type: which providers can be its ground truth here, of how many
    definitions the dataset has recordings, and why others can't.
    Exit status 1 where no reference test can run.
    """
    from generator.ground_truth.doctor import can_test, diagnose, served, table_lines
    from generator.ground_truth.machine import this_machine

    if options.given("--dataset"):
        Choice(dataset).find()
    with progress("Trying imports"):
        checks = diagnose(this_machine())
        op_types = served(this_machine(), dataset)
    if as_json:
        rows = [check.as_dict() for check in checks]
        write_json({"checks": rows, "op_types": [row.as_dict() for row in op_types]})
    else:
        for check in checks:
            write_lines([f"{check.state.value:<7} {check.name}: {check.detail}"])
            write_lines([f"        {check.advice}"] if check.advice else [])
        write_lines(["", *table_lines(op_types)])
    return status_of(can_test(checks))


cli.add_command(doctor)

main = partial(run_and_exit, cli, "trace-dataset")

if __name__ == "__main__":
    main()
