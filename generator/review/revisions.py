"""Choose the two revisions of a git checkout that a review compares."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from generator.problems import Failure
from generator.problems.messages import plural, quote
from generator.review.moved_on import moved_on
from generator.review.scratch import scratch
from generator.review.sources import BaseAndHead, Revisions, Sources, write_sides
from generator.review.tree import Tree, refused

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


@contextmanager
def open_sources(
    dataset: Path, base: str | None, head: str | None
) -> Iterator[Sources]:
    """Yield the sides of a review; temporary folders are gone afterwards.

    Raises Failure.
    """
    try:
        from generator.review.git import one_line_errors, open_repository
    except ImportError:
        raise Failure(NOT_INSTALLED) from None
    with one_line_errors():
        repository = open_repository(dataset)
        revisions, old, new = _trees(repository, dataset, base, head)
        outside = repository.outside(revisions.base, revisions.head or None)
        odd = tuple(sorted({*refused(old), *refused(new)}))
        sides = BaseAndHead(old, new, odd, outside)
        if revisions.branch:
            branch = repository.tree(revisions.branch)
            moved = moved_on(sides, branch, repository.blobs)
            sides = replace(sides, moved=moved)
    with scratch("trace-dataset-review-") as folder:
        lying = None if revisions.head else dataset
        yield write_sides(revisions, sides, repository.blobs, folder, lying)


def _trees(
    repository: Repository, root: Path, base: str | None, head: str | None
) -> tuple[Revisions, Tree, Tree]:
    tip = repository.find("HEAD") if head is None else repository.resolve(head)

    def sides(commit: str) -> tuple[Tree, Tree]:
        old = repository.tree(commit) if commit else {}
        if head is None:
            return old, repository.working_tree(root, commit or None, old)
        return old, repository.tree(tip) if tip else {}

    if tip is None:
        return Revisions("", "", "the checkout has no commit yet"), *sides("")
    shown = "" if head is None else tip
    based = _base(repository, tip, base)
    if based is None and head is None:
        old, new = sides(tip)
        if BaseAndHead(old, new).changed or repository.outside(tip, None):
            return Revisions(tip, shown, "the last commit"), old, new
    commit, which, branch = based or (*_before(repository, tip), "")
    return Revisions(commit, shown, which, branch), *sides(commit)


def _base(
    repository: Repository, tip: str, asked: str | None
) -> tuple[str, str, str] | None:
    """Return the commit that was asked for, or where head left a branch, and why.

    And the commit that the branch has by now, empty where it is the same.
    """
    if asked is not None:
        wanted = repository.resolve(asked)
        common = repository.common(wanted, tip)
        if common is None:
            if repository.git.is_shallow:
                raise Failure(
                    f"The shallow checkout has no commit that {quote(asked)} and head "
                    "share: fetch more (git fetch --unshallow)."
                )
            return wanted, f"{quote(asked)}, which shares no history with head", ""
        ahead, _ = repository.git.ahead_behind(wanted, common)
        if ahead:
            which = (
                f"where head left {quote(asked)}, which is {plural(ahead, 'commit')}"
            )
            return common, f"{which} further by now", wanted
        return common, quote(asked), ""
    branches = {name: repository.find(name) for name in DEFAULT_BRANCHES}
    for name, branch in branches.items():
        left = repository.common(branch, tip) if branch else None
        if left is not None and left != tip:
            short = name.removeprefix("refs/").removeprefix("remotes/")
            which = f"where head left {short.removeprefix('heads/')}"
            return left, which, branch if branch and branch != left else ""
    parents = repository.parents(tip)
    if len(parents) == 1 and not any(branches.values()):
        names = "upstream/HEAD, origin/HEAD, main, master"
        raise Failure(
            f"There is no branch that head may have left ({names}), and of a pull "
            "request the last commit is not all: name a --base."
        )
    return None


def _before(repository: Repository, tip: str) -> tuple[str, str]:
    """Return the commit before head, or nothing, and in words that it is so."""
    before = repository.find(f"{tip}~1")
    if before is None and repository.git.is_shallow:
        raise Failure(
            "The checkout is shallow and has no commit before head: fetch more "
            "(git fetch --deepen=50), or name a --base."
        )
    if before is None:
        return "", "nothing: head is the first commit"
    return before, "the commit before head"
