"""Choose the two revisions of a review, and bring both into folders."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from generator.attached import Key
from generator.review.changes import Sorted, owner_of, sort_changes
from generator.review.git import (
    DEFAULT_BRANCHES,
    GitError,
    Repository,
    Tree,
    open_repository,
)
from generator.review.trees import (
    FOLDERS,
    Sides,
    is_rendered,
    refused,
    working_tree,
    write_tree,
)
from generator.wording import plural, quote


@dataclass(frozen=True)
class Revisions:
    """Hold what is compared; `base` is a commit, or empty where nothing is before.

    `head` is empty for the working tree as it is. `said` explains the choice.
    """

    base: str
    head: str
    said: str


@dataclass(frozen=True)
class Sources:
    """Hold two folders with the sides of a review, and what changed between them."""

    base: Path
    head: Path
    revisions: Revisions
    sides: Sides
    sorted: Sorted


@contextmanager
def open_sources(
    dataset: Path, base: str | None, head: str | None
) -> Iterator[Sources]:
    """Yield the sides of a review; temporary folders are gone afterwards.

    Raises GitError.
    """
    repository = open_repository(dataset)
    revisions, old, new = _trees(repository, dataset, base, head)
    bad = tuple(sorted({*refused(old), *refused(new)}))
    sides = Sides(old, new, bad)
    found = sort_changes(sides.changed)
    keys = frozenset(found.definitions)
    with TemporaryDirectory(prefix="trace-dataset-review-") as name:
        before, after = Path(name, "base"), Path(name, "head")
        before.mkdir()
        write_tree(repository, old, before, is_empty=lambda p: _is_known(p, keys))
        if revisions.head:
            after.mkdir()
            write_tree(repository, new, after)
        else:
            after = dataset
        yield Sources(before, after, revisions, sides, found)


def _is_known(path: str, keys: frozenset[Key]) -> bool:
    """Return whether base's content is not needed: the definition did not change."""
    owner = owner_of(path)
    return is_rendered(path) or (owner is not None and owner[0] not in keys)


def _trees(
    repository: Repository, root: Path, base: str | None, head: str | None
) -> tuple[Revisions, Tree, Tree]:
    tip = repository.resolve(head) if head is not None else repository.find("HEAD")
    if head is not None:
        assert tip is not None
        commit, said = _base(repository, tip, base, is_dirty=False)
        old = repository.tree(commit) if commit else {}
        return Revisions(commit, tip, said), old, repository.tree(tip)
    if tip is None:
        new = working_tree(repository, root, {})
        return Revisions("", "", "the checkout has no commit yet"), {}, new
    committed = repository.tree(tip)
    new = working_tree(repository, root, committed)
    is_dirty = any(p.split("/", 1)[0] in FOLDERS for p in Sides(committed, new).changed)
    commit, said = _base(repository, tip, base, is_dirty)
    if commit == tip:
        return Revisions(commit, "", said), committed, new
    old = repository.tree(commit) if commit else {}
    return Revisions(commit, "", said), old, working_tree(repository, root, old)


def _base(
    repository: Repository, tip: str, asked: str | None, is_dirty: bool
) -> tuple[str, str]:
    """Return the commit that head is compared with, and why it is that one."""
    if asked is not None:
        wanted = repository.resolve(asked)
        common = repository.merge_base(wanted, tip)
        if common is None:
            if repository.is_shallow():
                raise GitError(
                    f"The shallow checkout has no commit that {quote(asked)} and head "
                    "share: fetch more (git fetch --unshallow)."
                )
            return wanted, f"{quote(asked)}, which shares no history with head"
        ahead = repository.count(f"{common}..{wanted}")
        if ahead:
            said = f"where head left {quote(asked)}, which is {plural(ahead, 'commit')}"
            return common, f"{said} further by now"
        return common, f"{quote(asked)}"
    for name in DEFAULT_BRANCHES:
        branch = repository.find(name)
        common = repository.merge_base(branch, tip) if branch is not None else None
        if common is not None and common != tip:
            short = name.removeprefix("refs/").removeprefix("remotes/")
            return common, f"where head left {short.removeprefix('heads/')}"
    if is_dirty:
        return tip, "the last commit"
    before = repository.find(f"{tip}~1")
    if before is not None:
        return before, "the commit before head"
    if repository.is_shallow():
        raise GitError(
            "The checkout is shallow and has no commit before head: fetch more "
            "(git fetch --deepen=50), or name a --base."
        )
    return "", "nothing: head is the first commit"
