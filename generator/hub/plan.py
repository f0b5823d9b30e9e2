"""Find out what a push would do, without doing any of it."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from generator.hub.bundle import Bundle
from generator.hub.client import RemoteFile
from generator.hub.delta import Delta, compare
from generator.hub.failures import HubFailure
from generator.hub.gate import Judged, Objection, of_partial
from generator.hub.local import TESTS, LocalFile, Unfit
from generator.hub.pulls import PullRequest
from generator.hub.text import Facts, write_text
from generator.wording import one_line

if TYPE_CHECKING:
    from generator.hub.client import Client
    from generator.hub.pulls import PullRequests

MAIN = "main"
_SAMPLE = 512
_FILES_A_REQUEST = 256
_USUAL_LFS = (".safetensors", ".parquet", ".bin", ".npy", ".npz", ".zip", ".gz")
_USUAL_LFS_BYTES = 10 * 1024 * 1024


@dataclass(frozen=True)
class Where:
    """Hold where a push goes: pull request `number`, `branch`, or an own pull request."""

    number: int | None = None
    branch: str | None = None


@dataclass(frozen=True)
class Package:
    """Hold one bundle with its files and what the gate says of it."""

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
class Plan:
    """Hold what a push will do.

    `revision` is what the files were compared with, at the commit `parent`; `pull` is
    the pull request that is gone on with, and `opens` says that one is to be opened.
    `owns_text` says that the pull request's text is this program's to write. `lfs` are
    the paths that go through LFS; `asked` says that the Hub said so.
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
    lfs: frozenset[str] = frozenset()
    asked: bool = False


def make_plan(
    client: Client, pulls: PullRequests, package: Package, where: Where
) -> Plan:
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
    opens = pull is None and where.branch is None
    lfs, asked = _through_lfs(client, package, delta, revision, opens, bool(name))
    return Plan(
        package,
        revision,
        parent,
        remote,
        delta,
        _text(client, package, revision, parent, remote, delta),
        pull,
        opens,
        pull is not None and pull.author == name and package.bundle.marker in pull.text,
        lfs,
        asked,
    )


def _whole(client: Client, package: Package, delta: Delta, parent: str) -> Package:
    """Return the package, with what it was allowed to leave out. Raises Unfit.

    Tests are rendered from the definitions that are here: from a part of a dataset they
    would replace those of the whole.
    """
    if not any(file.path.startswith(f"{TESTS}/") for file in delta.changed):
        return package
    elsewhere = [
        path
        for path in client.below("definitions", parent)
        if path not in package.delete and not (package.root / path).is_file()
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
        delta = compare(package.files, {**remote}, package.delete)
    return write_text(
        Facts(
            package.root,
            package.bundle,
            package.files,
            delta,
            remote,
            client.folders(parent),
            package.judged,
            package.allowed,
            package.reasons,
        )
    )


def _through_lfs(
    client: Client,
    package: Package,
    delta: Delta,
    revision: str,
    opens: bool,
    may_ask: bool,
) -> tuple[frozenset[str], bool]:
    """Return which paths go through LFS, and whether the Hub was asked.

    It answers only those who may write; for others it is what it usually does.
    """
    files = [file for file in delta.sent if file.size]
    if not may_ask:
        usual = [
            f.path
            for f in files
            if f.path.endswith(_USUAL_LFS) or f.size > _USUAL_LFS_BYTES
        ]
        return frozenset(usual), False
    found: set[str] = set()
    for at in range(0, len(files), _FILES_A_REQUEST):
        rows = _ask(
            client, package.root, files[at : at + _FILES_A_REQUEST], revision, opens
        )
        for row in rows:
            if row.get("shouldIgnore"):
                path = one_line(str(row["path"]))
                raise Unfit(
                    f"The repository's .gitignore leaves out {path}: change it."
                )
            if row["uploadMode"] == "lfs":
                found.add(str(row["path"]))
    return frozenset(found), True


def _ask(
    client: Client, root: Path, files: Sequence[LocalFile], revision: str, opens: bool
) -> list[dict[str, Any]]:
    from huggingface_hub.utils import (
        build_hf_headers,
        get_session,
        hf_raise_for_status,
    )

    rows = []
    for file in files:
        with (root / file.path).open("rb") as stream:
            sample = base64.b64encode(stream.read(_SAMPLE)).decode()
        rows.append({"path": file.path, "size": file.size, "sample": sample})
    place = f"{client.api.endpoint}/api/datasets/{client.repo}/preupload"

    def ask() -> list[dict[str, Any]]:
        answer = get_session().post(
            f"{place}/{quote(revision, safe='')}",
            json={"files": rows},
            headers=build_hf_headers(library_name="gen-tests"),
            params={"create_pr": "1"} if opens else {},
        )
        hf_raise_for_status(answer)
        found: list[dict[str, Any]] = answer.json()["files"]
        return found

    return client.call(ask, revision)
