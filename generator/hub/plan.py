"""Find out what a push would do, without doing any of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from generator.hub.bundle import Bundle
from generator.hub.card import all_paths
from generator.hub.client import RemoteFile, remote_files
from generator.hub.delta import Delta, compare
from generator.hub.failures import HubFailure
from generator.hub.local import LocalFile, Unfit
from generator.hub.names import TESTS
from generator.hub.pr_description import Facts, describe
from generator.hub.preconditions import Judged, Objection, of_partial
from generator.hub.pulls import PullRequest

if TYPE_CHECKING:
    from generator.hub.client import Client
    from generator.hub.pulls import PullRequests

MAIN = "main"


@dataclass(frozen=True)
class Where:
    """Hold where a push goes: pull request `number`, `branch`, or an own pull request."""

    number: int | None = None
    branch: str | None = None


@dataclass(frozen=True)
class Package:
    """Hold one bundle with its files and its preconditions."""

    root: Path
    bundle: Bundle
    files: tuple[LocalFile, ...]
    judged: Judged
    allowed: tuple[Objection, ...]
    reasons: Mapping[str, str]
    message: str = ""
    delete: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Return the title of the pull request and of its commit."""
        return self.message or self.bundle.title

    @property
    def paths(self) -> list[str]:
        """Return all paths that the push is about."""
        return [*(file.path for file in self.files), *self.delete]


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
    pull: PullRequest | None = None
    opens: bool = False
    owns_text: bool = False


def make_plan(
    client: Client, pulls: PullRequests, package: Package, where: Where
) -> PushPlan:
    """Look at the repository, and return what is to be done. Changes nothing.

    Raises HubFailure, and Unfit for a file that can't be pushed.
    """
    account = client.account()
    name = str(account["name"]) if account else ""
    pull = None
    if where.number is not None:
        pull = pulls.read(where.number)
        if pull.status not in ("open", "draft"):
            raise HubFailure(
                f"Pull request {where.number} of {client.repo} is {pull.status}: "
                "leave --pr out for a new one."
            )
    elif where.branch is None and name:
        pull = pulls.find_own(name, package.bundle.marker, package.title)
    revision = where.branch or (pull.revision if pull else MAIN)
    parent = client.head(revision)
    remote = client.files(package.paths, parent)
    delta = compare(package.files, remote, package.delete)
    package = _whole(client, package, delta, parent)
    return PushPlan(
        package,
        revision,
        parent,
        remote,
        delta,
        _text(client, package, revision, parent, remote, delta),
        pull,
        pull is None and where.branch is None,
        pull is not None and pull.author == name and package.bundle.marker in pull.text,
    )


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
        if file.path not in package.delete and not (package.root / file.path).is_file()
    ]
    if not elsewhere:
        return package
    objection = of_partial(elsewhere)
    if objection.rule not in package.reasons:
        raise Unfit(str(objection))
    return replace(package, allowed=(*package.allowed, objection))


def _text(
    client: Client,
    package: Package,
    revision: str,
    parent: str,
    remote: Mapping[str, RemoteFile],
    delta: Delta,
) -> str:
    if revision.startswith("refs/pr/"):
        # what the pull request as a whole does, not this push of it
        parent = client.head(MAIN)
        remote = client.files(package.paths, parent)
        delta = compare(package.files, remote, package.delete)
    folders = [e.path for e in client.tree(parent) if not hasattr(e, "blob_id")]
    return describe(
        Facts(
            package.root,
            package.bundle,
            package.files,
            delta,
            remote,
            folders,
            package.judged,
            package.allowed,
            package.reasons,
        )
    )
