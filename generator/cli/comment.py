"""The command `trace-dataset comment`: put a review on a pull request of the Hub."""

from __future__ import annotations

from pathlib import Path

import click

from generator.cli.output import EXIT_FINE, Failure, say, write
from generator.wording import one_line

_MOST_BYTES = 4 * 1024 * 1024
_SAID = {
    "post": ("would be posted", "posted"),
    "update": ("would be updated", "updated"),
    "nothing": ("is up to date", "is up to date"),
}


@click.command()
@click.option(
    "--repo",
    required=True,
    metavar="OWNER/NAME",
    help="The dataset's repository on the Hub.",
)
@click.option(
    "--pr",
    "number",
    type=click.IntRange(min=1),
    required=True,
    metavar="N",
    help="The number of the pull request.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Say what would be done and do nothing, which is what happens anyway.",
)
@click.option("--yes", is_flag=True, help="Do it.")
@click.argument("report", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def comment(repo: str, number: int, dry_run: bool, yes: bool, report: Path) -> int:
    """Put REPORT, Markdown of `trace-dataset review`, on a pull request of the Hub.

    There is one comment: the same command updates it, and touches none that somebody
    else wrote. A dry run unless --yes is given.
    """
    from generator.hub.names import bad_repo

    if why := bad_repo(repo):
        raise click.BadParameter(f"{one_line(repo, 80)!r}: {why}", param_hint="--repo")
    if dry_run and yes:
        raise click.UsageError("--dry-run does nothing, so there is no --yes to it.")
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
            done = publish(client, number, name, text)
        else:
            done = what_to_do(find(client, number, name), text)
    except HubFailure as error:
        raise Failure(str(error)) from None
    place = f"{client.api.endpoint}/datasets/{repo}/discussions/{number}"
    write(f"comment {_SAID[done][yes]}: {place}\n")
    if not yes:
        if name is None:
            say("No token: a comment of yours is not looked for.")
        say("Dry run: nothing was sent. Add --yes to send it.")
    return EXIT_FINE


def _read(report: Path) -> str:
    with report.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise Failure(f"{report} has more than {_MOST_BYTES >> 20} MiB.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise Failure(f"{report} is not UTF-8 text.") from None
    if not text.strip():
        raise Failure(f"{report} is empty: there is nothing to say.")
    return text
