"""The command `trace-dataset`: check, review and publish a dataset."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click

from generator import __version__
from generator.cli import options
from generator.cli.audit import audit
from generator.cli.card import card
from generator.cli.certify import certify
from generator.cli.choose import Choice
from generator.cli.comment import comment
from generator.cli.evaluate import evaluate
from generator.cli.import_ import export, import_
from generator.cli.mcp import mcp
from generator.cli.model import model
from generator.cli.output import (
    EXIT_FINE,
    EXIT_USAGE,
    progress,
    run_and_exit,
    status_of,
    write_json,
    write_lines,
)
from generator.cli.parity import parity
from generator.cli.pull import pull
from generator.cli.push import push
from generator.cli.record import record
from generator.cli.replay import replay
from generator.cli.review import review
from generator.cli.rules import rules
from generator.cli.traces import traces
from generator.cli.validate import validate
from generator.cli.verify import verify
from generator.cli.warm import warm


@click.group(
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


_COMMANDS = (
    doctor,
    validate,
    review,
    evaluate,
    replay,
    mcp,
    audit,
    comment,
    rules,
    verify,
    record,
    warm,
    certify,
    card,
    pull,
    push,
    import_,
    export,
    model,
    parity,
    traces,
)
for command in _COMMANDS:
    cli.add_command(command)

main = partial(run_and_exit, cli, "trace-dataset")

if __name__ == "__main__":
    main()
