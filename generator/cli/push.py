"""The command `trace-dataset push`: publish definitions that passed to the Hub."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from generator.cli import options
from generator.cli.choose import Choice
from generator.cli.output import (
    EXIT_PROBLEMS,
    progress,
    say,
    say_first,
    status_of,
    write,
    write_lines,
)
from generator.problems import Failure
from generator.problems.messages import one_line, plural

if TYPE_CHECKING:
    from generator.hub.package import Package
    from generator.hub.push import Pusher

_OBJECTIONS = 10
_ROUNDS = 3
_DRY_ATTEMPTS = 3
_create_pr: options.Decorator = options.flag(
    "Push to a pull request: your open one for the same definitions, or a new one; "
    "this is the default.",
    expose_value=False,
)("create_pr")


@options.command()
@_create_pr
def push(
    repo: str = options.repo(required=True),
    choice: Choice = options.choice,
    pr: int | None = options.pr(),
    branch: str | None = options.value(
        "Commit to a branch, such as main, without a pull request.", "B"
    ),
    message: str | None = options.value(
        "Title of the pull request and commit.", "TEXT"
    ),
    yes: bool = options.send,
    together: bool = options.flag(
        "Open one pull request for all chosen definitions, not one for each."
    ),
    allowances: tuple[str, ...] = options.several(
        "Push in spite of this rule's objection; the pull request states the reason. "
        "May be repeated.",
        "RULE=REASON",
        "--allow",
    ),
    delete: tuple[str, ...] = options.several(
        "Delete this file of the repository; no other file is deleted. May be "
        "repeated.",
        "PATH",
    ),
    card: bool = options.flag("Also push the dataset card, with current tables."),
) -> int:
    """Publish definitions that passed as pull requests on the Hub.

    A dry run unless --yes is given. A definition must be valid and rendered, and the
    evidence must show that it agrees with a production kernel. After a lost connection,
    the same command continues. Without changes it makes no commit.
    """
    choice.require("push")
    options.one_of("--dry-run", "--yes")
    options.one_of("--create-pr", "--pr", "--branch")
    if branch is not None and (not branch.strip() or branch.startswith("refs/")):
        raise click.UsageError("--branch takes the name of a branch, such as main.")
    from generator.hub.client import Client
    from generator.hub.failures import Changed, Unreachable
    from generator.hub.package import PushOptions, make_bundles, pack
    from generator.hub.preconditions import PARTIAL, judge, read_allowances
    from generator.hub.push import Pusher

    reasons = read_allowances(allowances)
    discovered, files = choice.find()
    bundles = make_bundles(
        files, op_types=choice.op_types, names=choice.names, together=together
    )
    if len(bundles) > 1 and (pr or branch or delete):
        raise click.UsageError(
            f"Each of the {len(bundles)} definitions gets a pull request of its own: add "
            "--together to push all to one place."
        )
    with progress("Checking the definitions"):
        judged = judge(choice.dataset, files, discovered)
    keys = {key for bundle in bundles for key in bundle.keys}
    standing, allowed = judged.split(keys, reasons)
    say_first(standing, _OBJECTIONS, "objections")
    for rule in sorted(set(reasons) - {o.rule for o in allowed} - {PARTIAL}):
        say(f"--allow {rule}: nothing objects by this rule.")
    # a dry run has little to lose by giving up
    client = Client(repo, say) if yes else Client(repo, say, _DRY_ATTEMPTS)
    pusher = Pusher(client)
    asked = PushOptions(reasons, message or "", delete, card, pr, branch)
    packages = pack(choice.dataset, repo, bundles, judged, asked)
    try:
        if yes:
            client.require_write()
        if client.account() is None:
            say("No token: can't search for your open pull requests.")
        for package in packages:
            _push(pusher, package, yes=yes and not standing)
    except Changed as error:
        say(str(error))
        return EXIT_PROBLEMS
    except Unreachable as error:
        if yes:
            raise
        say(str(error))
        for package in packages:
            write_lines([f"{package.title}: {plural(len(package.files), 'file')}"])
            write_lines(f"  {file.size:>10}  {file.path}" for file in package.files)
        say("Dry run without the Hub: which of these are there already is not known.")
        return status_of(not standing)
    if not yes:
        say("Dry run: nothing was sent. Add --yes to push.")
    elif standing:
        say("Nothing was sent: fix the objections, or add --allow RULE=REASON.")
    return status_of(not standing)


def _push(pusher: Pusher, package: Package, *, yes: bool) -> None:
    client = pusher.client
    for _ in range(_ROUNDS):
        with progress("Comparing with the repository"):
            plan = pusher.plan(package)
        write_lines(plan.lines(client.repo))
        for path in plan.delta.absent:
            say(f"{one_line(path)} is not in the repository: nothing to delete.")
        if not yes:
            return
        with progress("Pushing"):
            pushed = pusher.carry_out(plan)
        if not pushed.unfinished:
            break
    else:
        raise Failure(
            f"The Hub opened pull request {pushed.number} without its files several times: "
            "run the same command later."
        )
    number = pushed.number
    place = client.url(number) if number else f"{client.repo}, {plan.revision}"
    if pushed.commit:
        write(f"pushed: {place}, commit {pushed.commit[:12]}\n")
    elif pushed.described:
        write(f"pushed: {place}, its text only\n")
    else:
        write("nothing new: no commit was made\n")
