"""The command `trace-dataset pull`: download a published dataset, or a part of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.cli import options
from generator.cli.choose import Choice
from generator.cli.output import (
    progress,
    say,
    say_first,
    say_on_terminal,
    status_of,
    write,
)
from generator.problems.messages import one_line, plural, quote

if TYPE_CHECKING:
    from generator.hub.pull import Pull, PullStatus

_MIB = 1024 * 1024
_SHOWN = 50
# fewer than a push has: a second run continues the first
_ATTEMPTS = 5


@options.command()
def pull(
    repo: str = options.repo(required=True),
    revision: str | None = options.value(
        "A branch, a tag or a commit; main if not given.", "REV"
    ),
    pr: int | None = options.pr(),
    choice: Choice = options.choice,
    blobs: str = options.value(
        "Tensor files to pull as well: none, those that the chosen workloads name and "
        "the recordings of the chosen definitions, or all that belong to these.",
        ["none", "needed", "all"],
        default="none",
    ),
    force: bool = options.force,
) -> int:
    """Download a dataset from the Hub, or a part of it.

    Files with the right hash are not fetched again, so that a second run continues an
    interrupted one. Edited files stay; written files are printed. Exit status: 0 all
    chosen files are present, 1 some are missing, 2 wrong usage or no answer from the Hub.
    """
    if not options.given("--dataset"):
        # a dataset above this folder is another one
        choice = replace(choice, dataset=Path())
    if choice.dataset.is_file():
        where = quote(str(choice.dataset))
        raise click.UsageError(f"--dataset {where}: this is a file.")
    options.one_of("--revision", "--pr")
    choice.require("pull")
    from generator.hub.client import Client
    from generator.hub.pull import Pull

    at = f"refs/pr/{pr}" if pr is not None else revision or "main"
    client = Client(repo, say_on_terminal, _ATTEMPTS)
    pulled = Pull(client, choice.dataset, at, _print_file, force)
    with progress(f"Pulling {one_line(repo)}"):
        pulled.bring(choice.op_types, choice.names, blobs)
    say_first(pulled.problems, _SHOWN, "problems")
    _say_totals(pulled)
    return status_of(not pulled.problems)


def _print_file(path: str, status: PullStatus) -> None:
    write(f"{status.value:<8}{path}\n")


def _say_totals(pulled: Pull) -> None:
    from generator.hub.pull import PullStatus

    edited = pulled.count(PullStatus.KEPT)
    parts = [
        f"{pulled.count(PullStatus.NEW)} new",
        f"{pulled.count(PullStatus.CHANGED)} changed",
        f"{pulled.count(PullStatus.CURRENT)} as they were",
        *([f"{edited} edited here"] if edited else []),
        f"{pulled.bytes / _MIB:.1f} MiB fetched",
    ]
    remark = ", the Hub was not asked" if pulled.is_offline else ""
    say(f"commit {pulled.commit[:12]}{remark}: {', '.join(parts)}")
    count, size = pulled.left_out
    if count:
        say(
            f"{plural(count, 'blob')} of {size / _MIB:.1f} MiB left out: "
            "--blobs needed, or all"
        )
