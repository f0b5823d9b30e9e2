"""The command `trace-dataset review`: judge a change of a dataset."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.cli import options
from generator.cli.choose import prefix_of
from generator.cli.output import (
    STATUSES,
    check_writable,
    progress,
    say,
    say_on_terminal,
    seek_cycles_rarely,
    write_files,
    write_pieces,
)
from generator.problems import Failure
from generator.review import FORMATS, shown

if TYPE_CHECKING:
    from generator.review.sources import Sources

_ATTEMPTS = 5
_SUFFIXES = {"text": "txt", "markdown": "md", "junit": "xml", "github": "github.txt"}


@options.command()
def review(
    base: str | None = options.value(
        "Compare with the merge base of REV and head. REV is the default branch if not "
        "given (upstream/HEAD, origin/HEAD, main or master); on that branch, compare with "
        "the last commit, or with the one before if the working tree is clean.",
        "REV",
    ),
    head: str | None = options.value(
        "The revision to review; the working tree if not given.", "REV"
    ),
    hub: str | None = options.repo(
        "Review a pull request of this dataset on the Hub, with --pr."
    ),
    pr: int | None = options.pr(),
    dataset: Path = options.dataset,
    form: str = options.form(formats=FORMATS),
    output: Path | None = options.output(
        "Write the review in all formats there, and the tests of the changed definitions.",
        "DIR",
    ),
    notes: bool = options.notes,
    trust_evidence: bool = options.flag(
        "Accept the evidence in verification/ that the change itself adds; its author "
        "wrote it."
    ),
    accepted: tuple[str, ...] = options.several(
        "Accept that a file, or something in it, is gone (removal:PATH), or that it "
        "checks less (weaker:PATH); a PATH that ends in / is a folder; may be repeated.",
        "KIND:PATH",
        "--accept",
    ),
    unproven: tuple[str, ...] = options.several(
        "Accept this definition though nothing can be compared with it; may be repeated.",
        "NAME",
        "--allow-unproven",
    ),
    execute: bool = options.flag(
        "Run the reference tests of changed definitions, and the solutions that the change "
        "adds, in a sandbox; with --trust, the tests' result does not count as evidence."
    ),
    keep_failures: Path | None = options.keep_failures,
    trust: bool = options.trust,
    device: str = options.value(
        "The device that --execute uses.", ["cpu", "cuda"], default="cpu"
    ),
) -> int:
    """Review the changes of a dataset between two revisions.

    They are those of a git checkout, or with --hub and --pr of a pull request on the
    Hub. Both sides are read through
    git or from the Hub; nothing is checked out, and no code of the dataset runs without
    --execute. Exit status: 0 approve, 1 changes needed, 2 wrong usage or unreadable
    input, 3 needs a person or a GPU.
    """
    if (hub is None) != (pr is None):
        raise click.UsageError("--hub and --pr go together.")
    if hub is not None:
        options.drop("--hub reads no git checkout", "--base", "--head")
    options.only_with("--execute", "--trust", "--keep-failures")
    if not execute:
        # what is executed may leave much in cycles
        seek_cycles_rarely()
    from generator import api
    from generator.execution.cores import usable_cores
    from generator.review.review import (
        ReviewRequest,
        with_results,
        with_software,
        with_solutions,
    )

    if execute or output is not None:
        # rendering and the sandbox take time to import
        from generator.review.crossed import cross_run
        from generator.review.execute import execute_changes, render_changes, why_not
        from generator.review.failing import keep_failures_of
        from generator.review.solutions import evaluate_change
    if execute and (reason := why_not(device)) is not None:
        raise Failure(f"--execute is refused: {reason}")
    if keep_failures is not None:
        check_writable(keep_failures)
    prefix = "" if hub else prefix_of(dataset)
    with _sources(dataset, base, head, hub, pr) as sources:
        asked = ReviewRequest(trust_evidence, accepted, unproven)
        result = api.review(sources, asked, jobs=usable_cores())
        if execute:
            with progress("Running the reference tests of changed definitions"):
                executed = execute_changes(result.changes, sources.head, device, trust)
            result = result if executed is None else with_results(result, executed)
            if keep_failures is not None and executed is not None and executed.failed:
                with progress("Keeping what failed"):
                    summary = keep_failures_of(
                        result.changes, executed, sources.head, keep_failures
                    )
                say(summary)
            with progress("Running the tests of both sides' software"):
                crossed = cross_run(result.changes, sources, trust)
            result = result if crossed is None else with_software(result, crossed)
            with progress("Evaluating the solutions that the change brings"):
                evaluated = evaluate_change(
                    result.changes, sources, device, usable_cores(), keep_failures
                )
            result = result if evaluated is None else with_solutions(result, evaluated)
        if output is not None:
            for one in FORMATS:
                text = "".join(shown(result, one, prefix=prefix, notes=notes))
                name = f"review.{_SUFFIXES.get(one, one)}"
                write_files(output, {name: text.encode("utf-8", "backslashreplace")})
            tests = output / "tests" / "references"
            count = render_changes(result.changes, sources.head, tests)
            say(
                f"Wrote {len(FORMATS)} reports and the tests of {count} definitions "
                f"to {output}"
            )
        # which reads lines of head's files
        write_pieces(shown(result, form, prefix=prefix, notes=notes), form)
    return STATUSES[result.decision.status]


def _sources(
    dataset: Path, base: str | None, head: str | None, hub: str | None, pr: int | None
) -> AbstractContextManager[Sources]:
    """Return both sides of the change: of a checkout, or of the Hub."""
    if hub is None or pr is None:
        from generator.api import Dataset, changes

        return changes(Dataset(dataset), base, head)
    from generator.hub.client import Client
    from generator.hub.review_sources import open_hub_sources

    return open_hub_sources(Client(hub, say_on_terminal, _ATTEMPTS), pr)
