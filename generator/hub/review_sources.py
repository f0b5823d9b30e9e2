"""Bring a pull request of the Hub into two folders: what it changes, and no more.

The Hub's listings say what changed, by hash. Fetched are the files of the definitions
that changed, the other definitions' own files, and the evidence; of what did not change
neither blobs nor workloads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from generator.hub.client import OPEN, Client
from generator.hub.failures import HubFailure
from generator.hub.remote import (
    Listing,
    RemoteFile,
    fetch,
    in_threads,
    is_commit,
    list_files,
)
from generator.problems.messages import one_line, quote
from generator.review.moved_on import moved_on
from generator.review.scratch import scratch
from generator.review.sources import BaseAndHead, Revisions, Sources, write_sides
from generator.review.tree import Tree, TreeEntry, check_total


@dataclass
class HubObjects:
    """The files of both listings, each fetched once into a folder."""

    client: Client
    folder: Path
    known: dict[str, tuple[str, RemoteFile]] = field(default_factory=dict)

    def add(self, listing: Listing) -> Tree:
        """Learn where a listing's files are; return them as a tree."""
        for file in listing.files.values():
            self.known.setdefault(file.sha1, (listing.commit, file))
        return {
            path: TreeEntry("100644", file.sha1) for path, file in listing.files.items()
        }

    def blobs(self, oids: Sequence[str]) -> Iterator[bytes]:
        """Yield the content of each object, one after the other in memory."""
        missing = [o for o in dict.fromkeys(oids) if not (self.folder / o).exists()]
        check_total(sum(self.known[oid][1].size for oid in missing))
        in_threads(self._fetch, missing, self._note)
        for oid in oids:
            yield (self.folder / oid).read_bytes()

    def _note(self, _: str, error: BaseException | None) -> None:
        if error is not None:
            raise error

    def _fetch(self, oid: str) -> None:
        commit, file = self.known[oid]
        # a folder for each: two sides have files of the same path
        fetch(self.client, commit, file, self.folder / f"{oid}.part").rename(
            self.folder / oid
        )


@contextmanager
def open_hub_sources(client: Client, number: int) -> Iterator[Sources]:
    """Yield the sides of a pull request; temporary folders are gone afterwards.

    Raises HubFailure, and Failure where the files can't be written here.
    """
    revisions = _revisions(client, number)
    head = list_files(client, revisions.head)
    base = list_files(client, revisions.base) if revisions.base else None
    with scratch("trace-dataset-review-") as folder:
        objects = HubObjects(client, folder / "objects")
        objects.folder.mkdir()
        new = objects.add(head)
        old = objects.add(base) if base is not None else {}
        known = base.refused if base is not None else {}
        sides = BaseAndHead(old, new, tuple(p for p in head.refused if p not in known))
        if revisions.branch:
            branch = objects.add(list_files(client, revisions.branch))
            sides = replace(sides, moved=moved_on(sides, branch, objects.blobs))
        yield write_sides(revisions, sides, objects.blobs, folder)


def _revisions(client: Client, number: int) -> Revisions:
    """Return the commits of a pull request that is open: its head, and where it began."""
    details = client.pull_request(number)
    if details.status not in OPEN:
        raise HubFailure(
            f"The pull request {number} of {client.repo} is "
            f"{one_line(str(details.status), 40)}: only one that is open is reviewed."
        )
    target = str(details.target_branch or "main").removeprefix("refs/heads/")
    ahead = _commits(client, f"refs/pr/{number}")
    behind = _commits(client, target)
    common = set(behind)
    base = next((commit for commit in ahead if commit in common), "")
    shown = quote(target, 100)
    choice = f"where pull request {number} left {shown}"
    branch = behind[0] if base and behind[0] != base else ""
    if branch:
        choice += f", which has {behind.index(base)} commits more by now"
    return Revisions(base, ahead[0], choice, branch)


def _commits(client: Client, revision: str) -> list[str]:
    listed = client.ask("list_repo_commits", revision=revision, about=revision)
    commits = [str(commit.commit_id) for commit in listed]
    if not commits or not all(map(is_commit, commits)):
        raise HubFailure(f"The Hub names no commit of {one_line(revision, 100)}.")
    return commits
