"""The command `trace-dataset`: look after a dataset."""

from __future__ import annotations

import sys

import click

from generator import __version__
from generator.cli.audit import audit
from generator.cli.card import card
from generator.cli.comment import comment
from generator.cli.drift import drift
from generator.cli.floors import floors
from generator.cli.output import EXIT_FINE, EXIT_PROBLEMS, progress, run, write
from generator.cli.pull import pull
from generator.cli.push import push
from generator.cli.record import record
from generator.cli.review import review
from generator.cli.rules import rules
from generator.cli.validate import validate
from generator.cli.verify import verify
from generator.wording import one_line


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
def cli() -> None:
    """Look after a trace dataset.

    Data goes to stdout, talk to stderr. Exit status: 0 fine, 1 problems found,
    2 wrong usage or unreadable input.
    """


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(as_json: bool) -> int:
    """Say what this machine can test, and what to install for the rest.

    For each op_type: the provider that would be its ground truth here, or why none.
    Exit status 1 where no reference test can run.
    """
    import json

    from generator.doctor import can_test, diagnose, served
    from generator.ground_truth.machine import this_machine

    with progress("Trying imports"):
        checks = diagnose(this_machine())
        op_types = served(this_machine())
    if as_json:
        rows = [check.as_dict() for check in checks]
        table = [row.as_dict() for row in op_types]
        write(json.dumps({"checks": rows, "op_types": table}, indent=2) + "\n")
    else:
        for check in checks:
            write(f"{check.state.value:<7} {check.name}: {one_line(check.detail)}\n")
            if check.advice:
                write(f"        {check.advice}\n")
        width = max(len(row.op_type) for row in op_types)
        write("\nop_type, and its ground truth on this machine\n")
        for row in op_types:
            text = row.summary if row.provider else f"none ({row.summary})"
            write(f"{row.op_type:<{width}}  {one_line(text)}\n")
    return EXIT_FINE if can_test(checks) else EXIT_PROBLEMS


_COMMANDS = (
    validate,
    review,
    audit,
    floors,
    comment,
    rules,
    verify,
    record,
    drift,
    card,
    pull,
    push,
)
for command in _COMMANDS:
    cli.add_command(command)


def main() -> None:
    """Run the command and exit with its status."""
    sys.exit(run(cli, "trace-dataset"))


if __name__ == "__main__":
    main()
