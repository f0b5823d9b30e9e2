"""The command `trace-dataset pull`: download a published dataset, or a part of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.cli.choose import check_choice
from generator.cli.options import (
    choice_options,
    dataset_option,
    force_option,
    pr_option,
    repo_option,
)
from generator.cli.output import (
    EXIT_FINE,
    EXIT_PROBLEMS,
    Failure,
    progress,
    say,
    write,
)
from generator.problems.messages import one_line, plural, quote

if TYPE_CHECKING:
    from generator.hub.pull import Fate, Pulled

_MIB = 1024 * 1024
_SHOWN = 50
# fewer than a push has: a second run continues the first
_ATTEMPTS = 5


@click.command()
@repo_option()
@click.option(
    "--revision", metavar="REV", help="A branch, a tag or a commit; main if not given."
)
@pr_option()
@choice_options()
@click.option(
    "--blobs",
    type=click.Choice(["none", "needed", "all"]),
    default="none",
    show_default=True,
    help="Tensor files to pull as well: none, those that the chosen workloads name and "
    "the recordings of the chosen definitions, or all that belong to these.",
)
@dataset_option
@force_option
def pull(
    repo: str,
    revision: str | None,
    pr: int | None,
    names: tuple[str, ...],
    op_types: tuple[str, ...],
    everything: bool,
    blobs: str,
    dataset: Path,
    force: bool,
) -> int:
    """Download a dataset from the Hub, or the files that belong to some definitions.

    Files with the right hash are not fetched again, so that a second run continues an
    interrupted one. Edited files stay; written files are printed. Exit status: 0 all
    chosen files are present, 1 some are missing, 2 wrong usage or no answer from the Hub.
    """
    from generator.hub.names import bad_repo

    if reason := bad_repo(repo):
        raise click.UsageError(f"--repo {quote(repo)}: {reason}")
    if dataset.is_file():
        raise click.UsageError(f"--dataset {quote(str(dataset))}: this is a file.")
    if revision is not None and pr is not None:
        raise click.UsageError("Choose one of --revision and --pr.")
    check_choice("pull", op_types, names, everything)
    from generator.dataset.paths import UnknownName
    from generator.hub.choose import BlobChoice
    from generator.hub.client import Client
    from generator.hub.failures import HubFailure
    from generator.hub.pull import Order
    from generator.hub.pull import pull as bring

    at = f"refs/pr/{pr}" if pr is not None else revision or "main"
    # retries are reported on a terminal alone
    talk = say if sys.stderr.isatty() else lambda text: None
    order = Order(at, names, op_types, BlobChoice(blobs), force)
    try:
        with progress(f"Pulling {one_line(repo)}"):
            pulled = bring(Client(repo, talk, _ATTEMPTS), order, dataset, _print_file)
    except (HubFailure, UnknownName) as error:
        raise Failure(str(error)) from error
    except OSError as error:
        place = error.filename2 or error.filename or dataset
        raise Failure(f"{place}: {error.strerror}") from error
    return _report(pulled)


def _print_file(path: str, fate: Fate) -> None:
    write(f"{fate.value:<8}{path}\n")


def _report(pulled: Pulled) -> int:
    """Print the problems and the totals; return the exit status."""
    from generator.hub.pull import Fate

    for problem in pulled.problems[:_SHOWN]:
        say(problem)
    more = len(pulled.problems) - _SHOWN
    if more > 0:
        say(f"and {plural(more, 'problem')} more")
    kept = pulled.count(Fate.KEPT)
    parts = [
        f"{pulled.count(Fate.NEW)} new",
        f"{pulled.count(Fate.CHANGED)} changed",
        f"{pulled.count(Fate.CURRENT)} as they were",
        *([f"{kept} edited here"] if kept else []),
        f"{pulled.bytes / _MIB:.1f} MiB fetched",
    ]
    said = ", the Hub was not asked" if pulled.is_offline else ""
    say(f"commit {pulled.commit[:12]}{said}: {', '.join(parts)}")
    count, size = pulled.left_out
    if count:
        say(
            f"{plural(count, 'blob')} of {size / _MIB:.1f} MiB left out: "
            "--blobs needed, or all"
        )
    return EXIT_PROBLEMS if pulled.problems else EXIT_FINE
