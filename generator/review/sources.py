"""Choose the two revisions of a review, and bring both into folders."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from generator.dataset.changes import Sorted, sort_changes
from generator.problems.messages import plural, quote
from generator.review.snapshots import (
    RECORDINGS,
    GitError,
    Sides,
    Tree,
    is_of_others,
    refused,
    write_base,
    write_tree,
)

if TYPE_CHECKING:
    from generator.review.git import Repository

DEFAULT_BRANCHES = (
    "refs/remotes/upstream/HEAD",
    "refs/remotes/origin/HEAD",
    "refs/remotes/origin/main",
    "refs/remotes/origin/master",
    "refs/heads/main",
    "refs/heads/master",
)
"""Where the default branch is looked for, in this order."""
NOT_INSTALLED = (
    "pygit2 is not installed, which reads git checkouts: "
    "pip install 'gen-tests[review]'."
)


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
    """Hold two folders with the sides of a review, and what changed between them.

    Partial folders have of a definition that did not change only its own file.
    """

    base: Path
    head: Path
    revisions: Revisions
    sides: Sides
    sorted: Sorted
    is_partial: bool = False


@contextmanager
def open_sources(
    dataset: Path, base: str | None, head: str | None
) -> Iterator[Sources]:
    """Yield the sides of a review; temporary folders are gone afterwards.

    Raises GitError.
    """
    try:
        from generator.review.git import one_line_errors, open_repository
    except ImportError:
        raise GitError(NOT_INSTALLED) from None
    with one_line_errors():
        repository = open_repository(dataset)
        revisions, old, new = _trees(repository, dataset, base, head)
    sides = Sides(old, new, tuple(sorted({*refused(old), *refused(new)})))
    found = sort_changes(sides.changed)
    with TemporaryDirectory(prefix="trace-dataset-review-") as name:
        before, after = Path(name, "base"), dataset
        write_base(repository.blobs, old, before, found.definitions)
        if revisions.head:
            after = Path(name, "head")
            recorded = (path for path in new if path.startswith(RECORDINGS))
            hollow = {p for p in recorded if is_of_others(p, found.definitions)}
            write_tree(repository.blobs, new, after, hollow)
        yield Sources(before, after, revisions, sides, found)


def _trees(
    repository: Repository, root: Path, base: str | None, head: str | None
) -> tuple[Revisions, Tree, Tree]:
    tip = repository.find("HEAD") if head is None else repository.resolve(head)
    committed = repository.tree(tip) if tip is not None else {}
    new = committed
    if head is None:
        new = repository.working_tree(root, tip, committed)
    if tip is None:
        return Revisions("", "", "the checkout has no commit yet"), {}, new
    commit, said = _base(repository, tip, base, bool(Sides(committed, new).changed))
    revisions = Revisions(commit, "" if head is None else tip, said)
    if commit == tip:
        return revisions, committed, new
    old = repository.tree(commit) if commit else {}
    if head is None:
        new = repository.working_tree(root, commit or None, old)
    return revisions, old, new


def _base(
    repository: Repository, tip: str, asked: str | None, is_dirty: bool
) -> tuple[str, str]:
    """Return the commit that head is compared with, and why it is that one."""
    if asked is not None:
        wanted = repository.resolve(asked)
        common = repository.merge_base(wanted, tip)
        if common is None:
            if repository.git.is_shallow:
                raise GitError(
                    f"The shallow checkout has no commit that {quote(asked)} and head "
                    "share: fetch more (git fetch --unshallow)."
                )
            return wanted, f"{quote(asked)}, which shares no history with head"
        ahead, _ = repository.git.ahead_behind(wanted, common)
        if ahead:
            said = f"where head left {quote(asked)}, which is {plural(ahead, 'commit')}"
            return common, f"{said} further by now"
        return common, quote(asked)
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
    if repository.git.is_shallow:
        raise GitError(
            "The checkout is shallow and has no commit before head: fetch more "
            "(git fetch --deepen=50), or name a --base."
        )
    return "", "nothing: head is the first commit"
