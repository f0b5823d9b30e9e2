"""The command `trace-dataset comment`: post a review on a pull request of the Hub."""

from __future__ import annotations

from pathlib import Path

import click

from generator.cli.options import dry_run_option, pr_option, repo_option, yes_option
from generator.cli.output import EXIT_FINE, Failure, say, write
from generator.problems.messages import one_line

_MOST_BYTES = 4 * 1024 * 1024
_OUTCOMES = {
    "post": ("would be posted", "posted"),
    "update": ("would be updated", "updated"),
    "nothing": ("is up to date", "is up to date"),
}


@click.command()
@repo_option()
@pr_option(required=True)
@dry_run_option
@yes_option
@click.argument("report", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def comment(repo: str, pr: int, dry_run: bool, yes: bool, report: Path) -> int:
    """Post REPORT, Markdown of `trace-dataset review`, on a pull request of the Hub.

    A later call updates your comment and changes no other one. A dry run unless --yes is
    given.
    """
    from generator.hub.names import bad_repo

    if why := bad_repo(repo):
        raise click.BadParameter(f"{one_line(repo, 80)!r}: {why}", param_hint="--repo")
    if dry_run and yes:
        raise click.UsageError("Choose one of --dry-run and --yes.")
    from generator.hub.client import Client
    from generator.hub.comment import body, find, publish, what_to_do
    from generator.hub.failures import HubFailure

    text = body(_read(report))
    try:
        client = Client(repo, say)
        account = client.account()
        name = str(account["name"]) if account is not None else None
        if yes and name is None:
            raise HubFailure("There is no token: run `hf auth login`, or set HF_TOKEN.")
        if yes and name is not None:
            done = publish(client, pr, name, text)
        else:
            done = what_to_do(find(client, pr, name), text)
    except HubFailure as error:
        raise Failure(str(error)) from None
    write(f"comment {_OUTCOMES[done][yes]}: {client.url(pr)}\n")
    if not yes:
        if name is None:
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
