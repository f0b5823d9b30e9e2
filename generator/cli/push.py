"""The command `trace-dataset push`: publish definitions that passed to the Hub."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from generator.cli.choose import check_choice, chosen_files
from generator.cli.options import (
    choice_options,
    dataset_option,
    dry_run_option,
    pr_option,
    repo_option,
    yes_option,
)
from generator.cli.output import (
    EXIT_FINE,
    EXIT_PROBLEMS,
    Failure,
    progress,
    say,
    write,
)
from generator.problems.messages import one_line, plural

if TYPE_CHECKING:
    from generator.hub.bundle import Bundle, Package
    from generator.hub.client import Client
    from generator.hub.local import LocalFile
    from generator.hub.plan import PushPlan, Where
    from generator.hub.preconditions import Judged
    from generator.hub.pulls import PullRequests

_OBJECTIONS = 10
_ROUNDS = 3


@click.command()
@repo_option()
@choice_options()
@click.option(
    "--create-pr",
    is_flag=True,
    help="Push to a pull request: your open one for the same definitions, or a new one; "
    "this is the default.",
)
@pr_option()
@click.option(
    "--branch",
    metavar="B",
    help="Commit to a branch, such as main, without a pull request.",
)
@click.option("--message", metavar="TEXT", help="Title of the pull request and commit.")
@dry_run_option
@yes_option
@click.option(
    "--together",
    is_flag=True,
    help="Open one pull request for all chosen definitions, not one for each.",
)
@click.option(
    "--allow",
    "allowances",
    multiple=True,
    metavar="RULE=REASON",
    help="Push in spite of this rule's objection; the pull request states the reason. "
    "May be repeated.",
)
@click.option(
    "--delete",
    multiple=True,
    metavar="PATH",
    help="Delete this file of the repository; no other file is deleted. May be "
    "repeated.",
)
@click.option(
    "--card",
    is_flag=True,
    help="Also push the dataset card, with current tables.",
)
@dataset_option
def push(
    repo: str,
    names: tuple[str, ...],
    op_types: tuple[str, ...],
    everything: bool,
    create_pr: bool,
    pr: int | None,
    branch: str | None,
    message: str | None,
    dry_run: bool,
    yes: bool,
    together: bool,
    allowances: tuple[str, ...],
    delete: tuple[str, ...],
    card: bool,
    dataset: Path,
) -> int:
    """Publish definitions that passed, as pull requests of a Hub dataset repository.

    A dry run unless --yes is given. A definition must be valid and rendered, and the
    evidence must show that it agrees with a production kernel. After a lost connection,
    the same command continues. Without changes it makes no commit.
    """
    _check_usage(repo, names, op_types, everything, create_pr, pr, branch, dry_run, yes)
    from generator.hub.bundle import make_bundles
    from generator.hub.client import Client
    from generator.hub.failures import Changed, HubFailure
    from generator.hub.local import Unfit
    from generator.hub.plan import Where
    from generator.hub.preconditions import judge, read_allowances
    from generator.hub.pulls import PullRequests

    try:
        reasons = read_allowances(allowances)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    found, files = chosen_files(dataset, op_types, names)
    bundles = make_bundles(files, op_types=op_types, names=names, together=together)
    if len(bundles) > 1 and (pr or branch or delete):
        raise click.UsageError(
            f"Each of the {len(bundles)} definitions gets a pull request of its own: add "
            "--together to push all to one place."
        )
    with progress("Checking the definitions"):
        judged = judge(dataset, files, found)
    standing = _print_objections(bundles, judged, reasons)
    try:
        client = Client(repo, say)
        pulls, where = PullRequests(client), Where(pr, branch)
        with TemporaryDirectory(prefix="trace-dataset-push-") as name:
            folder = Path(name)
            shown = _write_card(dataset, folder, repo) if card else []
            packages = _packages(
                dataset, folder, bundles, judged, reasons, message, delete, shown
            )
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
        say("Nothing was sent: fix the objections, or add --allow RULE=REASON.")
    return EXIT_PROBLEMS if standing else EXIT_FINE


def _check_usage(
    repo: str,
    names: Sequence[str],
    op_types: Sequence[str],
    everything: bool,
    create_pr: bool,
    pr: int | None,
    branch: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    from generator.hub.names import bad_repo

    if why := bad_repo(repo):
        raise click.BadParameter(f"{one_line(repo, 80)!r}: {why}", param_hint="--repo")
    check_choice("push", op_types, names, everything)
    if create_pr + (pr is not None) + (branch is not None) > 1:
        raise click.UsageError("Choose one of --create-pr, --pr and --branch.")
    if dry_run and yes:
        raise click.UsageError("Choose one of --dry-run and --yes.")
    if branch is not None and (not branch.strip() or branch.startswith("refs/")):
        raise click.UsageError("--branch takes the name of a branch, such as main.")


def _print_objections(
    bundles: Sequence[Bundle], judged: Judged, reasons: dict[str, str]
) -> bool:
    """Print the objections to a push; return whether any is not allowed."""
    from generator.hub.preconditions import PARTIAL, split

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
        say("No token: can't search for your open pull requests.")
        return
    token = (account.get("auth") or {}).get("accessToken") or {}
    if yes and token.get("role") == "read":
        raise HubFailure(
            "The token has read access only: create one with write access at "
            f"{client.api.endpoint}/settings/tokens, then `hf auth login --force`."
        )


def _write_card(dataset: Path, folder: Path, repo: str) -> list[str]:
    """Write the dataset's card and its tables to a folder; return their paths."""
    from generator.dataset.atomic_write import write_atomically
    from generator.hub.card import card_files, settings_of

    try:
        files = card_files(dataset, settings_of(dataset, repo))
    except ValueError as error:
        raise Failure(str(error)) from None
    for path, content in files.items():
        write_atomically(folder / path, content)
    return list(files)


def _packages(
    dataset: Path,
    folder: Path,
    bundles: Sequence[Bundle],
    judged: Judged,
    reasons: dict[str, str],
    message: str | None,
    delete: tuple[str, ...],
    card: Sequence[str],
) -> list[Package]:
    """Return each bundle with its files, read once however many share them.

    Tests that are not standalone are sent in the standalone form, written to `folder`,
    where the files of the `card` are.
    """
    from dataclasses import replace
    from functools import cache

    from huggingface_hub import get_token

    from generator.dataset.json_file import read_json
    from generator.hub.bundle import Package
    from generator.hub.local import Unfit, make_standalone, read_file, take_inventory
    from generator.hub.preconditions import split

    inventory = take_inventory(dataset)
    secret = get_token() or ""
    made_here = make_standalone(dataset, inventory.tests, folder, secret) or ()
    if made_here:
        inventory = replace(inventory, tests=made_here)

    @cache
    def read(path: str) -> LocalFile:
        is_made = path in made_here or path in card
        return read_file(folder if is_made else dataset, path, secret)

    unrecorded = read_json(dataset, "blob/ground_truth/unrecorded.json").value
    named = set(unrecorded) if isinstance(unrecorded, dict) else set()
    made = []
    for bundle in bundles:
        paths = [path for key in bundle.keys for path in inventory.owned.get(key, ())]
        paths += [*inventory.shared(bundle.keys, named), *card]
        both = sorted(set(paths) & set(delete))
        if both:
            raise Unfit(f"{one_line(both[0])} is pushed, so that it can't be deleted.")
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
            f"The Hub opened pull request {made.number} without its files several times: "
            "run the same command later."
        )
    number = made.number
    place = client.url(number) if number else f"{client.repo}, {plan.revision}"
    if made.commit:
        write(f"pushed: {place}, commit {made.commit[:12]}\n")
    elif made.described:
        write(f"pushed: {place}, its text only\n")
    else:
        write("nothing new: no commit was made\n")


def _shown(client: Client, plan: PushPlan) -> str:
    """Return the changes of a plan, a line for each file."""
    from generator.hub.pr_description import human

    delta = plan.delta
    if plan.opens:
        where = "a new pull request"
    else:
        where = f"pull request {plan.number}" if plan.pull else plan.revision
    lines = [f"{client.repo}, {where}: {one_line(plan.package.title, 200)}"]
    paths = [file.path for file in delta.sent] + [file.path for file in delta.deleted]
    width = max((len(one_line(path)) for path in paths), default=0)
    adds = {file.path for file in delta.added}
    for file in delta.sent:
        does = "add" if file.path in adds else "change"
        size = human(file.size)
        lines.append(f"  {does:<6}  {one_line(file.path):<{width}}  {size:>10}")
    for gone in delta.deleted:
        size = human(gone.size)
        lines.append(f"  delete  {one_line(gone.path):<{width}}  {size:>10}")
    for path in delta.absent:
        say(f"{one_line(path)} is not in the repository: nothing to delete.")
    total = sum(file.size for file in delta.sent)
    lines.append(
        f"  {len(delta.added)} to add, {len(delta.changed)} to change, "
        f"{len(delta.deleted)} to delete; {human(total)}; "
        f"{plural(delta.same, 'file')} unchanged"
    )
    if plan.pull is not None and not plan.owns_text:
        lines.append("  its text stays: this command did not write it")
    return "\n".join(lines) + "\n"
