"""The command `trace-dataset comment`: post a review on a pull request of the Hub."""

from __future__ import annotations

from pathlib import Path

import click

from generator.cli import options
from generator.cli.output import EXIT_FINE, progress, say, write
from generator.problems import Failure

_MOST_BYTES = 4 * 1024 * 1024
_OUTCOMES = {
    "post": ("would be posted", "posted"),
    "update": ("would be updated", "updated"),
    "nothing": ("is up to date", "is up to date"),
}


@options.command()
def comment(
    repo: str = options.repo(required=True),
    pr: int = options.pr(required=True),
    yes: bool = options.send,
    report: Path = options.argument(
        type=click.Path(exists=True, dir_okay=False, path_type=Path)
    ),
) -> int:
    """Post a review as a comment on a pull request of the Hub.

    REPORT is a file with the Markdown of `trace-dataset review`. A later call updates
    your comment and changes no other one. A dry run unless --yes is given.
    """
    options.one_of("--dry-run", "--yes")
    from generator.hub.client import Client
    from generator.hub.comment import body, publish
    from generator.hub.failures import NO_TOKEN

    text = body(_read(report))
    client = Client(repo, say)
    name = client.name()
    if yes and not name:
        raise Failure(NO_TOKEN)
    with progress("Asking the Hub"):
        done = publish(client, pr, name, text, dry=not yes)
    write(f"comment {_OUTCOMES[done][yes]}: {client.url(pr)}\n")
    if not yes:
        if not name:
            say("No token: can't search for your comment.")
        say("Dry run: nothing was sent. Add --yes to send it.")
    return EXIT_FINE


def _read(report: Path) -> str:
    with report.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise Failure(f"{report} is larger than {_MOST_BYTES >> 20} MiB.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise Failure(f"{report} is not UTF-8 text.") from None
    if not text.strip():
        raise Failure(f"{report} is empty.")
    return text
