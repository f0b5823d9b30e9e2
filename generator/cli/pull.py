"""The command `trace-dataset pull`: bring a published dataset here, or a part of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.cli.choose import check_choice, choice_options
from generator.cli.output import (
    EXIT_FINE,
    EXIT_PROBLEMS,
    Failure,
    progress,
    say,
    write,
)
from generator.wording import one_line, plural, quote

if TYPE_CHECKING:
    from generator.hub.pull import Fate, Pulled

_MIB = 1024 * 1024
_SHOWN = 50
# fewer than a push has: it is run again at no cost
_ATTEMPTS = 5


@click.command()
@click.option(
    "--repo", required=True, metavar="OWNER/NAME", help="The dataset on the Hub."
)
@click.option(
    "--revision", metavar="REV", help="A branch, a tag or a commit; main if not given."
)
@click.option(
    "--pr", type=click.IntRange(1), metavar="N", help="The pull request with number N."
)
@choice_options(
    "Pull what belongs to the definitions of this op_type",
    "Pull what belongs to this definition",
    "Pull the whole dataset",
)
@click.option(
    "--blobs",
    type=click.Choice(["none", "needed", "all"]),
    default="none",
    show_default=True,
    help="Tensor files to pull as well: none, those that the chosen workloads name and "
    "the recordings of the chosen definitions, or all that belong to these.",
)
@click.option(
    "--dataset",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("."),
    metavar="DIR",
    help="Where the dataset is, or is to be; the current directory if not given.",
)
@click.option("--force", is_flag=True, help="Overwrite files that were edited here.")
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
    """Bring a dataset from the Hub here, or what belongs to some definitions.

    What is here with the right hash is not fetched again, so a second run goes on where
    one was cut. Files that were edited here stay, and what was written is printed. Exit
    status: 0 all that was chosen is here, 1 something is not, 2 wrong usage or no answer
    from the Hub.
    """
    from generator.hub.names import bad_repo

    if reason := bad_repo(repo):
        raise click.UsageError(f"--repo {quote(repo)}: {reason}")
    if revision is not None and pr is not None:
        raise click.UsageError("--revision and --pr are two ways to say the same.")
    check_choice("pull", op_types, names, everything)
    from generator.hub.choose import Blobs
    from generator.hub.client import Client
    from generator.hub.failures import HubFailure
    from generator.hub.pull import Order
    from generator.hub.pull import pull as bring
    from generator.select import UnknownName

    at = f"refs/pr/{pr}" if pr is not None else revision or "main"
    # why it waits matters to who waits, and that is nobody without a terminal
    talk = say if sys.stderr.isatty() else lambda text: None
    order = Order(at, names, op_types, Blobs(blobs), force)
    try:
        with progress(f"Pulling {one_line(repo)}"):
            pulled = bring(Client(repo, talk, _ATTEMPTS), order, dataset, _tell)
    except (HubFailure, UnknownName) as error:
        raise Failure(str(error)) from error
    except OSError as error:
        place = error.filename2 or error.filename or dataset
        raise Failure(f"{place}: {error.strerror}") from error
    return _report(pulled)


def _tell(path: str, fate: Fate) -> None:
    write(f"{fate.value:<8}{path}\n")


def _report(pulled: Pulled) -> int:
    """Say what became of everything; return the exit status."""
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
