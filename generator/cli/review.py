"""The command `trace-dataset review`: judge a change of a dataset."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.cli.options import (
    dataset_option,
    no_cache_option,
    notes_option,
    output_option,
    pr_option,
    trust_option,
)
from generator.cli.output import (
    STATUSES,
    Failure,
    format_option,
    say,
    write,
)
from generator.problems.messages import quote
from generator.reports import FORMATS

if TYPE_CHECKING:
    from generator.review.review import Review
    from generator.review.sources import Sources

_ATTEMPTS = 5
_FORMATS = (*FORMATS, "html")
_SUFFIXES = {"text": "txt", "markdown": "md", "junit": "xml", "github": "github.txt"}


@click.command()
@click.option(
    "--base",
    metavar="REV",
    help="Compare with the merge base of REV and head. REV is the default branch if not "
    "given (upstream/HEAD, origin/HEAD, main or master); on that branch, compare with "
    "the last commit, or with the one before if the working tree is clean.",
)
@click.option(
    "--head",
    metavar="REV",
    help="The revision to review; the working tree if not given.",
)
@click.option(
    "--hub",
    metavar="OWNER/NAME",
    help="Review a pull request of this dataset on the Hub, with --pr.",
)
@pr_option()
@dataset_option
@format_option(formats=_FORMATS)
@output_option(
    "Write the review in all formats there, and the tests of the changed definitions.",
    "DIR",
    "--out",
)
@notes_option
@click.option(
    "--trust-evidence",
    is_flag=True,
    help="Accept the evidence in verification/ that the change itself adds; its author "
    "wrote it.",
)
@click.option(
    "--execute",
    is_flag=True,
    help="Run the reference tests of changed definitions, in a sandbox; with --trust, "
    "their result does not count as evidence.",
)
@click.option(
    "--device",
    type=click.Choice(["cpu", "cuda"]),
    default="cpu",
    show_default=True,
    help="The device that --execute uses.",
)
@trust_option
@no_cache_option
def review(
    base: str | None,
    head: str | None,
    hub: str | None,
    pr: int | None,
    dataset: Path,
    form: str,
    output: Path | None,
    notes: bool,
    trust_evidence: bool,
    execute: bool,
    device: str,
    trust: bool,
) -> int:
    """Review the changes of a dataset between two revisions of a git checkout.

    With --hub and --pr, review a pull request on the Hub. Both sides are read through
    git or from the Hub; nothing is checked out, and no code of the dataset runs without
    --execute. Exit status: 0 approve, 1 changes needed, 2 wrong usage or unreadable
    input, 3 needs a GPU.
    """
    if trust and not execute:
        raise click.UsageError("--trust goes with --execute.")
    _check_hub(hub, pr, base, head)
    from generator.cli.validate import prefix_of
    from generator.hub.failures import HubFailure
    from generator.review.report import VERDICTS, shown
    from generator.review.review import make_review
    from generator.review.snapshots import GitError
    from generator.review.sources import open_sources
    from generator.validation.parallel import default_jobs

    if execute:
        from generator.review.execute import why_not

        reason = why_not(device)
        if reason is not None:
            raise Failure(f"--execute is refused: {reason}")
    try:
        opened: AbstractContextManager[Sources] = open_sources(dataset, base, head)
        if hub is not None and pr is not None:
            opened = _of_hub(hub, pr)
        with opened as sources:
            made = make_review(sources, default_jobs(), trust_evidence=trust_evidence)
            if execute:
                made = _execute(made, sources, device, trust)
            prefix = "" if hub else prefix_of(dataset)
            if output is not None:
                _write_all(made, sources, prefix, notes, output)
    except (GitError, HubFailure) as error:
        raise Failure(str(error)) from error
    for text in shown(made, form, prefix=prefix, notes=notes):
        write(text)
    return STATUSES[VERDICTS[made.verdict]]


def _check_hub(
    hub: str | None, pr: int | None, base: str | None, head: str | None
) -> None:
    from generator.hub.names import bad_repo

    if (hub is None) != (pr is None):
        raise click.UsageError("--hub and --pr go together.")
    if hub is not None and (base is not None or head is not None):
        raise click.UsageError("--base and --head need a git checkout: drop --hub.")
    if hub is not None and (reason := bad_repo(hub)):
        raise click.UsageError(f"--hub {quote(hub)}: {reason}")


def _of_hub(hub: str, pr: int) -> AbstractContextManager[Sources]:
    from generator.hub.client import Client
    from generator.hub.review_sources import open_hub_sources

    talk = say if sys.stderr.isatty() else lambda text: None
    return open_hub_sources(Client(hub, talk, _ATTEMPTS), pr)


def _execute(made: Review, sources: Sources, device: str, trust: bool) -> Review:
    from generator.cli.output import progress
    from generator.review.execute import execute_changes
    from generator.review.review import with_results

    with progress("Running the reference tests of changed definitions"):
        executed = execute_changes(made.changes, sources.head, device, trust)
    return made if executed is None else with_results(made, executed)


def _write_all(
    made: Review, sources: Sources, prefix: str, notes: bool, out: Path
) -> None:
    from generator.dataset.atomic_write import write_atomically
    from generator.review.execute import render_changes
    from generator.review.report import shown

    for form in _FORMATS:
        text = "".join(shown(made, form, prefix=prefix, notes=notes))
        path = out / f"review.{_SUFFIXES.get(form, form)}"
        write_atomically(path, text.encode("utf-8", "backslashreplace"))
    rendered = render_changes(made.changes, sources.head, out / "tests" / "references")
    say(
        f"Wrote {len(_FORMATS)} reports and the tests of {rendered} definitions to {out}"
    )
