"""Choose the two revisions of a review, and bring both into folders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from generator.dataset.artifacts import Key
from generator.dataset.changes import Sorted, owner_of, sort_changes
from generator.dataset.paths import is_rendered
from generator.problems.messages import plural, quote
from generator.review.snapshots import (
    RECORDINGS,
    GitError,
    Sides,
    Tree,
    refused,
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
# names that validation never objects to; others are there, to be objected to
_QUIET = re.compile(r"(?!.*/(con|prn|aux|nul|com\d|lpt\d)[./])[a-z0-9_./-]*[a-z0-9_]")


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
        from generator.review.git import open_repository
    except ImportError:
        raise GitError(NOT_INSTALLED) from None
    repository = open_repository(dataset)
    revisions, old, new = _trees(repository, dataset, base, head)
    bad = tuple(sorted({*refused(old), *refused(new)}))
    sides = Sides(old, new, bad)
    found = sort_changes(sides.changed)
    keys = frozenset(found.definitions)
    with TemporaryDirectory(prefix="trace-dataset-review-") as name:
        before, after = Path(name, "base"), Path(name, "head")
        before.mkdir()
        needed, hollow = _needed(old, keys)
        write_tree(repository, needed, before, is_empty=hollow.__contains__)
        if revisions.head:
            after.mkdir()
            write_tree(repository, new, after, recorded=keys)
        else:
            after = dataset
        yield Sources(before, after, revisions, sides, found)


def _needed(tree: Tree, keys: frozenset[Key]) -> tuple[Tree, frozenset[str]]:
    """Return what of base must be there, and what of that may be empty.

    What is wrong with a definition that did not change is known from head. Its own file
    is there by name, so that what lies beside it is not taken for an orphan's.
    """
    plain = len({path.casefold() for path in tree}) == len(tree)
    needed: Tree = {}
    hollow = set()
    for path, entry in tree.items():
        owner = owner_of(path)
        if is_rendered(path) or path.startswith(RECORDINGS):
            continue
        if owner is not None and owner[0] not in keys:
            (op_type, name), kind = owner
            has_definition = f"definitions/{op_type}/{name}.json" in tree
            # traces without the folder of an author are objected to
            is_placed = kind != "traces" or path.count("/") > 2
            is_quiet = plain and is_placed and _QUIET.fullmatch(path) is not None
            if kind != "definition" and has_definition and is_quiet:
                continue
            hollow.add(path)
        needed[path] = entry
    return needed, frozenset(hollow)


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
        new = repository.working_tree(root, {})
        return Revisions("", "", "the checkout has no commit yet"), {}, new
    committed = repository.tree(tip)
    new = repository.working_tree(root, committed)
    is_dirty = bool(Sides(committed, new).changed)
    commit, said = _base(repository, tip, base, is_dirty)
    if commit == tip:
        return Revisions(commit, "", said), committed, new
    old = repository.tree(commit) if commit else {}
    return Revisions(commit, "", said), old, repository.working_tree(root, old)


def _base(
    repository: Repository, tip: str, asked: str | None, is_dirty: bool
) -> tuple[str, str]:
    """Return the commit that head is compared with, and why it is that one."""
    if asked is not None:
        wanted = repository.resolve(asked)
        common = repository.merge_base(wanted, tip)
        if common is None:
            if repository.is_shallow:
                raise GitError(
                    f"The shallow checkout has no commit that {quote(asked)} and head "
                    "share: fetch more (git fetch --unshallow)."
                )
            return wanted, f"{quote(asked)}, which shares no history with head"
        ahead = repository.ahead(wanted, common)
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
    if repository.is_shallow:
        raise GitError(
            "The checkout is shallow and has no commit before head: fetch more "
            "(git fetch --deepen=50), or name a --base."
        )
    return "", "nothing: head is the first commit"
