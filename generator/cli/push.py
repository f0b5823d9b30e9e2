"""The command `trace-dataset push`: publish what passed to a Hub dataset repository."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.cli.choose import (
    check_choice,
    choice_options,
    chosen_files,
    dataset_option,
)
from generator.cli.output import (
    EXIT_FINE,
    EXIT_PROBLEMS,
    Failure,
    progress,
    say,
    write,
)
from generator.wording import one_line, plural

if TYPE_CHECKING:
    from generator.hub.bundle import Bundle
    from generator.hub.client import Client
    from generator.hub.gate import Judged
    from generator.hub.local import LocalFile
    from generator.hub.plan import Package, Plan, Where
    from generator.hub.pulls import PullRequests

_OBJECTIONS = 10
_ROUNDS = 3


@click.command()
@click.option(
    "--repo",
    required=True,
    metavar="OWNER/NAME",
    help="The dataset's repository on the Hub.",
)
@choice_options(
    "Push the definitions of this op_type",
    "Push this definition and what belongs to it",
    "Push all definitions",
)
@click.option(
    "--create-pr",
    is_flag=True,
    help="Push to a pull request: an open one of yours for the same definitions if "
    "there is one, else a new one. This is what happens anyway.",
)
@click.option(
    "--pr", "number", type=click.IntRange(min=1), metavar="N", help="Push to that one."
)
@click.option(
    "--branch", metavar="B", help="Commit to a branch, such as main, and not to one."
)
@click.option("--message", metavar="TEXT", help="Title of the pull request and commit.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print what would be done and do nothing, which is what happens anyway.",
)
@click.option("--yes", is_flag=True, help="Do it.")
@click.option(
    "--together",
    is_flag=True,
    help="One pull request for all chosen definitions, not one for each.",
)
@click.option(
    "--allow",
    "allowances",
    multiple=True,
    metavar="RULE=REASON",
    help="Push against this rule's objection; the reason is written into the pull "
    "request. May be repeated.",
)
@click.option(
    "--delete",
    multiple=True,
    metavar="PATH",
    help="Delete this file of the repository as well; nothing else is ever deleted. "
    "May be repeated.",
)
@dataset_option
def push(
    repo: str,
    names: tuple[str, ...],
    op_types: tuple[str, ...],
    everything: bool,
    create_pr: bool,
    number: int | None,
    branch: str | None,
    message: str | None,
    dry_run: bool,
    yes: bool,
    together: bool,
    allowances: tuple[str, ...],
    delete: tuple[str, ...],
    dataset: Path,
) -> int:
    """Publish definitions that passed, as pull requests of a Hub dataset repository.

    A dry run unless --yes is given. What is pushed must be valid, its tests rendered,
    and its bytes on record as agreeing with a production kernel. After a lost connection
    the same command goes on; with nothing new it does nothing.
    """
    _check_usage(
        repo, names, op_types, everything, create_pr, number, branch, dry_run, yes
    )
    from generator.hub.bundle import make_bundles
    from generator.hub.client import Client
    from generator.hub.failures import Changed, HubFailure
    from generator.hub.gate import judge, read_allowances
    from generator.hub.local import Unfit
    from generator.hub.plan import Where
    from generator.hub.pulls import PullRequests

    try:
        reasons = read_allowances(allowances)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    found, files = chosen_files(dataset, op_types, names)
    bundles = make_bundles(files, op_types=op_types, names=names, together=together)
    if len(bundles) > 1 and (number or branch or delete):
        raise click.UsageError(
            f"{len(bundles)} definitions go into as many pull requests: add --together "
            "to bring them into one place."
        )
    with progress("Judging what is to be pushed"):
        judged = judge(dataset, files, found)
    standing = _tell_objections(bundles, judged, reasons)
    try:
        client = Client(repo, say)
        packages = _packages(dataset, bundles, judged, reasons, message, delete)
        pulls, where = PullRequests(client), Where(number, branch)
        _check_account(client, yes)
        for package in packages:
            _push(client, pulls, package, where, yes=yes and not standing)
    except Changed as error:
        say(str(error))
        return EXIT_PROBLEMS
    except (HubFailure, Unfit) as error:
        raise Failure(str(error)) from None
    if not yes:
        say("Dry run: nothing was sent. Add --yes to push.")
    elif standing:
        say("Nothing was sent: mend what is objected to, or --allow RULE=REASON.")
    return EXIT_PROBLEMS if standing else EXIT_FINE


def _check_usage(
    repo: str,
    names: Sequence[str],
    op_types: Sequence[str],
    everything: bool,
    create_pr: bool,
    number: int | None,
    branch: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    from generator.hub.names import bad_repo

    if why := bad_repo(repo):
        raise click.BadParameter(f"{one_line(repo, 80)!r}: {why}", param_hint="--repo")
    check_choice("push", op_types, names, everything)
    if create_pr + (number is not None) + (branch is not None) > 1:
        raise click.UsageError("Choose one of --create-pr, --pr and --branch.")
    if dry_run and yes:
        raise click.UsageError("--dry-run does nothing, so there is no --yes to it.")
    if branch is not None and (not branch.strip() or branch.startswith("refs/")):
        raise click.UsageError("--branch takes the name of a branch, such as main.")


def _tell_objections(
    bundles: Sequence[Bundle], judged: Judged, reasons: dict[str, str]
) -> bool:
    """Say what speaks against pushing; return whether any of it stands."""
    from generator.hub.gate import PARTIAL, split

    keys = {key for bundle in bundles for key in bundle.keys}
    standing, allowed = split(judged.of(keys), reasons)
    for objection in standing[:_OBJECTIONS]:
        say(str(objection))
    if len(standing) > _OBJECTIONS:
        say(f"and {len(standing) - _OBJECTIONS} more objections")
    for rule in sorted(set(reasons) - {o.rule for o in allowed} - {PARTIAL}):
        say(f"--allow {rule}: nothing objects by this rule.")
    return bool(standing)


def _check_account(client: Client, yes: bool) -> None:
    from generator.hub.failures import HubFailure

    account = client.account()
    if account is None:
        if yes:
            raise HubFailure("There is no token: run `hf auth login`, or set HF_TOKEN.")
        say("No token: your open pull requests are not looked for.")
        return
    token = (account.get("auth") or {}).get("accessToken") or {}
    if yes and token.get("role") == "read":
        raise HubFailure(
            "The token may only read: make one with write access at "
            f"{client.api.endpoint}/settings/tokens, then `hf auth login --force`."
        )


def _packages(
    dataset: Path,
    bundles: Sequence[Bundle],
    judged: Judged,
    reasons: dict[str, str],
    message: str | None,
    delete: tuple[str, ...],
) -> list[Package]:
    """Return each bundle with its files, read once however many share them."""
    from functools import cache

    from huggingface_hub import get_token

    from generator.hub.gate import split
    from generator.hub.local import Unfit, read_file, take_inventory
    from generator.hub.plan import Package
    from generator.jsonfile import read_json

    inventory = take_inventory(dataset)
    secret = get_token() or ""

    @cache
    def read(path: str) -> LocalFile:
        return read_file(dataset, path, secret)

    unrecorded = read_json(dataset, "blob/ground_truth/unrecorded.json").value
    named = set(unrecorded) if isinstance(unrecorded, dict) else set()
    made = []
    for bundle in bundles:
        paths = [path for key in bundle.keys for path in inventory.owned.get(key, ())]
        paths += inventory.shared(bundle.keys, named)
        both = sorted(set(paths) & set(delete))
        if both:
            raise Unfit(f"{one_line(both[0])} is pushed: it can't be deleted as well.")
        files = [read(path) for path in sorted(paths)]
        allowed = split(judged.of(bundle.keys), reasons)[1]
        title = " ".join(one_line(message or "", 200).split())
        made.append(
            Package(
                dataset,
                bundle,
                tuple(files),
                judged,
                tuple(allowed),
                reasons,
                title,
                delete,
            )
        )
    return made


def _push(
    client: Client, pulls: PullRequests, package: Package, where: Where, *, yes: bool
) -> None:
    from generator.hub.failures import HubFailure
    from generator.hub.plan import make_plan
    from generator.hub.push import carry_out

    for _ in range(_ROUNDS):
        with progress("Comparing with the repository"):
            plan = make_plan(client, pulls, package, where)
        write(_shown(client, plan))
        if not yes:
            return
        with progress("Pushing"):
            made = carry_out(client, pulls, plan)
        if not made.unfinished:
            break
    else:
        raise HubFailure(
            f"The Hub opened pull request {made.number} without its files, again and "
            "again: run the same command later."
        )
    number = made.number
    place = pulls.url(number) if number else f"{client.repo}, {plan.revision}"
    if made.commit:
        write(f"pushed: {place}, commit {made.commit[:12]}\n")
    elif made.described:
        write(f"pushed: {place}, its text only\n")
    else:
        write("nothing new: no commit was made\n")


def _shown(client: Client, plan: Plan) -> str:
    """Return what a plan would do, a line for each file."""
    from generator.hub.text import human

    delta = plan.delta
    if plan.opens:
        where = "a new pull request"
    else:
        where = f"pull request {plan.pull.number}" if plan.pull else plan.revision
    lines = [f"{client.repo}, {where}: {one_line(plan.package.title, 200)}"]
    paths = [file.path for file in delta.sent] + [file.path for file in delta.deleted]
    width = max((len(one_line(path)) for path in paths), default=0)
    adds = {file.path for file in delta.added}
    for file in delta.sent:
        does = "add" if file.path in adds else "change"
        lfs = "  LFS" if file.path in plan.lfs else ""
        size = human(file.size)
        lines.append(f"  {does:<6}  {one_line(file.path):<{width}}  {size:>10}{lfs}")
    for gone in delta.deleted:
        size = human(gone.size)
        lines.append(f"  delete  {one_line(gone.path):<{width}}  {size:>10}")
    for path in delta.absent:
        say(f"{one_line(path)} is not there: nothing to delete.")
    total = sum(file.size for file in delta.sent)
    through = sum(file.size for file in delta.sent if file.path in plan.lfs)
    guess = "" if plan.asked or not delta.sent else " (usually: the Hub was not asked)"
    lines.append(
        f"  {len(delta.added)} to add, {len(delta.changed)} to change, "
        f"{len(delta.deleted)} to delete; {human(total)}, of it {human(through)} "
        f"through LFS{guess}; {plural(delta.same, 'file')} there already"
    )
    if plan.pull is not None and not plan.owns_text:
        lines.append("  its text stays: it is not one that this command wrote")
    return "\n".join(lines) + "\n"
