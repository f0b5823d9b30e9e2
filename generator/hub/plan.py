"""Find out what a push would do, and say it, without doing any of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from generator.hub.card import all_paths
from generator.hub.client import OPEN, Client
from generator.hub.failures import HubFailure
from generator.hub.local import Delta, Unfit, compare
from generator.hub.names import TESTS
from generator.hub.package import Package
from generator.hub.pr_description import describe, human
from generator.hub.preconditions import of_partial
from generator.hub.remote import RemoteFile, files_at, remote_files
from generator.problems.messages import one_line, plural

MAIN = "main"


@dataclass
class PullRequests:
    """Know the pull requests of a repository; each text is read once.

    A pull request is the `DiscussionWithDetails` of huggingface_hub.
    """

    client: Client
    _read: dict[int, Any] = field(default_factory=dict)

    def find_own(self, author: str, marker: str, title: str) -> Any | None:
        """Return the author's open pull request with a marker, the newest, or None."""
        options = {"author": author, "discussion_type": "pull_request"}
        own = [
            one
            for one in self.client.ask("get_repo_discussions", **options)
            if one.is_pull_request and one.status in OPEN and one.author == author
        ]
        # most often the first one asked for is it
        for one in sorted(own, key=lambda one: (one.title != title, -one.num)):
            if one.num not in self._read:
                self._read[one.num] = self.client.pull_request(one.num)
            if _has_marker(_text_of(self._read[one.num]), marker):
                return self._read[one.num]
        return None

    def describe(self, pull: Any, text: str) -> bool:
        """Make a pull request's text what it should be; return whether it was not."""
        comment = _opening(pull)
        # the Hub may change the white space
        if comment is None or comment.content.split() == text.split():
            return False
        self.client.edit(pull.num, comment.id, text)
        self._read.pop(pull.num, None)
        return True


def _text_of(pull: Any) -> str:
    """Return the text that a pull request opens with."""
    return str(getattr(_opening(pull), "content", ""))


def _has_marker(text: str, marker: str) -> bool:
    """Return whether a pull request's text has the marker as a line of its own."""
    return marker in (line.strip() for line in text.splitlines())


def _opening(pull: Any) -> Any | None:
    return next((event for event in pull.events if event.type == "comment"), None)


@dataclass(frozen=True)
class Where:
    """Hold where a push goes: pull request `number`, `branch`, or an own pull request."""

    number: int | None = None
    branch: str | None = None


@dataclass(frozen=True)
class PushPlan:
    """Hold what a push will do.

    `revision` is what the files were compared with, at the commit `parent`; `pull` is
    the pull request that is gone on with, and `opens` says that one is to be opened.
    `owns_text` says that the pull request's text is this program's to write.
    """

    package: Package
    revision: str
    parent: str
    remote: Mapping[str, RemoteFile]
    delta: Delta
    text: str
    pull: Any | None
    opens: bool
    owns_text: bool

    @property
    def number(self) -> int | None:
        """Return the number of the pull request that is gone on with, or None."""
        return self.pull.num if self.pull else None


def make_plan(
    client: Client, pulls: PullRequests, package: Package, where: Where
) -> PushPlan:
    """Look at the repository, and return what is to be done. Changes nothing.

    Raises HubFailure, and Unfit for a file that can't be pushed.
    """
    name, marker = client.name(), package.bundle.marker
    pull = None
    if where.number is not None:
        pull = client.pull_request(where.number)
        if pull.status not in OPEN:
            raise HubFailure(
                f"Pull request {where.number} of {client.repo} is {pull.status}: "
                "leave --pr out for a new one."
            )
    elif where.branch is None and name:
        pull = pulls.find_own(name, marker, package.title)
    revision = where.branch or (pull.git_reference if pull else MAIN)
    parent, remote, delta = _compared(client, package, revision)
    package = _whole(client, package, delta, parent)
    # what the pull request as a whole does, not this push of it
    seen = _compared(client, package, MAIN) if pull else (parent, remote, delta)
    folders = [e.path for e in client.tree(seen[0]) if not hasattr(e, "blob_id")]
    return PushPlan(
        package,
        revision,
        parent,
        remote,
        delta,
        describe(package, seen[2], seen[1], folders),
        pull,
        opens=pull is None and where.branch is None,
        owns_text=pull is not None
        and pull.author == name
        and _has_marker(_text_of(pull), marker),
    )


def _compared(
    client: Client, package: Package, revision: str
) -> tuple[str, Mapping[str, RemoteFile], Delta]:
    """Return a revision's commit, its files of the package, and what is to be done."""
    parent = client.head(revision)
    remote = files_at(client, package.paths, parent)
    return parent, remote, compare(package.files, remote, package.wishes.delete)


def _whole(client: Client, package: Package, delta: Delta, parent: str) -> Package:
    """Return the package, with what it was allowed to leave out. Raises Unfit.

    Tests and the card are made of the definitions that are here: from a part of a dataset
    they would replace those of the whole.
    """
    paths = [file.path for file in delta.changed]
    if not any(p.startswith(f"{TESTS}/") or p in all_paths() for p in paths):
        return package
    elsewhere = [
        file.path
        for file in remote_files(client.tree(parent, "definitions", deep=True))
        if file.path not in package.wishes.delete
        and not (package.root / file.path).is_file()
    ]
    if not elsewhere:
        return package
    objection = of_partial(elsewhere)
    if objection.rule not in package.wishes.reasons:
        raise Unfit(str(objection))
    return replace(package, allowed=(*package.allowed, objection))


def lines_of(client: Client, plan: PushPlan) -> Iterator[str]:
    """Yield the changes of a plan, a line for each file."""
    delta = plan.delta
    where = f"pull request {plan.number}" if plan.pull else plan.revision
    where = "a new pull request" if plan.opens else where
    yield f"{client.repo}, {where}: {one_line(plan.package.title, 200)}"
    width = max((len(one_line(file.path)) for _, file in delta.steps), default=0)
    for what, file in delta.steps:
        yield (f"  {what:<6}  {one_line(file.path):<{width}}  {human(file.size):>10}")
    total = sum(file.size for file in delta.sent)
    yield (
        f"  {len(delta.added)} to add, {len(delta.changed)} to change, "
        f"{len(delta.deleted)} to delete; {human(total)}; "
        f"{plural(delta.same, 'file')} unchanged"
    )
    if plan.pull is not None and not plan.owns_text:
        yield "  its text stays: this command did not write it"
