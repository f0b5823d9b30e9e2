"""The command `trace-dataset review`: read a change of a dataset, and come to a verdict."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.cli.output import EXIT_FINE, EXIT_PROBLEMS, Failure, say, write
from generator.wording import quote

if TYPE_CHECKING:
    from generator.review.review import Review
    from generator.review.sources import Sources

EXIT_NEEDS_GPU = 3
_ATTEMPTS = 5
_FORMATS = ["text", "markdown", "json", "junit", "sarif", "github", "html"]
_FILES = {
    "text": "review.txt",
    "markdown": "review.md",
    "json": "review.json",
    "junit": "review.xml",
    "sarif": "review.sarif",
    "github": "review.github.txt",
    "html": "review.html",
}


@click.command()
@click.option(
    "--base",
    metavar="REV",
    help="What to compare with: the last commit that REV and head share. If not given, "
    "the last one shared with the default branch (upstream/HEAD, origin/HEAD, main or "
    "master); on that branch itself the last commit, or the one before if the "
    "working tree is clean.",
)
@click.option(
    "--head",
    metavar="REV",
    help="The revision to review; the working tree as it is if not given.",
)
@click.option(
    "--hub",
    metavar="OWNER/NAME",
    help="Review a pull request of this dataset on the Hub; goes with --pr.",
)
@click.option(
    "--pr", type=click.IntRange(1), metavar="N", help="The pull request's number."
)
@click.option(
    "--dataset",
    type=click.Path(path_type=Path),
    default=Path("."),
    metavar="DIR",
    help="Root of the dataset, in a git checkout; the current directory if not given.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    default="text",
    show_default=True,
    help="How to print the review.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the review in all formats there, and the tests of what changed.",
)
@click.option("--notes", is_flag=True, help="Show notes in text and github as well.")
@click.option(
    "--trust-evidence",
    is_flag=True,
    help="Take what the change itself brings in verification/ for seen; it is the word "
    "of its author.",
)
@click.option(
    "--execute",
    is_flag=True,
    help="Run the reference tests of what changed, in a sandbox.",
)
@click.option(
    "--device",
    type=click.Choice(["cpu", "cuda"]),
    default="cpu",
    show_default=True,
    help="Where --execute runs them.",
)
@click.option(
    "--trust",
    is_flag=True,
    help="Execute what the screen of the sources objects to, or without a layer of the "
    "sandbox; such a run is never believed.",
)
@click.option(
    "--no-cache", is_flag=True, help="Check everything anew, and remember nothing."
)
def review(
    base: str | None,
    head: str | None,
    hub: str | None,
    pr: int | None,
    dataset: Path,
    form: str,
    out: Path | None,
    notes: bool,
    trust_evidence: bool,
    execute: bool,
    device: str,
    trust: bool,
    no_cache: bool,
) -> int:
    """Review what changed in a dataset between two revisions of a git checkout.

    Or, with --hub and --pr, what a pull request on the Hub changes. Both sides are read
    through git or from the Hub; nothing is checked out, and without --execute
    nothing of the dataset runs. Exit status: 0 approve, 1 changes needed, 2 wrong usage
    or unreadable input, 3 needs a GPU.
    """
    if trust and not execute:
        raise click.UsageError("--trust goes with --execute.")
    _check_hub(hub, pr, base, head)
    from generator.cache import Cache, default_path
    from generator.cli.validate import prefix_of
    from generator.hub.failures import HubFailure
    from generator.parallel import default_jobs
    from generator.reports import Style
    from generator.review.git import GitError
    from generator.review.review import make_review
    from generator.review.shown import shown
    from generator.review.sources import open_sources

    if execute:
        _refuse_without_sandbox(trust, device)
    cache = None if no_cache else Cache(default_path())
    try:
        opened: AbstractContextManager[Sources] = open_sources(dataset, base, head)
        if hub is not None and pr is not None:
            opened = _of_hub(hub, pr)
        with opened as sources:
            made = make_review(
                sources, cache, default_jobs(), trust_evidence=trust_evidence
            )
            if execute:
                made = _execute(made, sources, device, trust)
            style = Style("" if hub else prefix_of(dataset), notes)
            if out is not None:
                _write_all(made, sources, style, out)
    except (GitError, HubFailure) as error:
        raise Failure(str(error)) from error
    for text in shown(form)(made, style):
        write(text)
    return _status(made)


def _check_hub(
    hub: str | None, pr: int | None, base: str | None, head: str | None
) -> None:
    from generator.hub.names import bad_repo

    if (hub is None) != (pr is None):
        raise click.UsageError("--hub and --pr go together.")
    if hub is not None and (base is not None or head is not None):
        raise click.UsageError("--base and --head are of a git checkout, not of --hub.")
    if hub is not None and (reason := bad_repo(hub)):
        raise click.UsageError(f"--hub {quote(hub)}: {reason}")


def _of_hub(hub: str, pr: int) -> AbstractContextManager[Sources]:
    from generator.hub.client import Client
    from generator.review.hub_sources import open_hub_sources

    talk = say if sys.stderr.isatty() else lambda text: None
    return open_hub_sources(Client(hub, talk, _ATTEMPTS), pr)


def _status(made: Review) -> int:
    from generator.review.review import Verdict

    return {
        Verdict.APPROVE: EXIT_FINE,
        Verdict.CHANGES: EXIT_PROBLEMS,
        Verdict.GPU: EXIT_NEEDS_GPU,
    }[made.verdict]


def _refuse_without_sandbox(trust: bool, device: str) -> None:
    from generator.review.execute import why_not

    reason = why_not(trust, device)
    if reason is not None:
        raise Failure(f"--execute is refused: {reason}")


def _execute(made: Review, sources: Sources, device: str, trust: bool) -> Review:
    from generator.cli.output import progress
    from generator.review.execute import execute_changes
    from generator.review.review import with_results

    with progress("Running the reference tests of what changed"):
        executed = execute_changes(made.changes, sources.head, device, trust)
    return made if executed is None else with_results(made, executed)


def _write_all(made: Review, sources: Sources, style: object, out: Path) -> None:
    from generator.files import write_atomically
    from generator.reports import Style
    from generator.review.execute import render_changes
    from generator.review.shown import shown

    assert isinstance(style, Style)
    for form, file in _FILES.items():
        text = "".join(shown(form)(made, style))
        write_atomically(out / file, text.encode("utf-8", "backslashreplace"))
    rendered = render_changes(made.changes, sources.head, out / "tests" / "references")
    say(f"Wrote {len(_FILES)} reports and the tests of {rendered} definitions to {out}")
