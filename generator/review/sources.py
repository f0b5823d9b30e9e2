"""Choose the two revisions of a review, and bring both into folders."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from generator.dataset.artifacts import Key
from generator.dataset.changes import Sorted, owner_of, sort_changes
from generator.dataset.json_file import read_json_lines
from generator.dataset.paths import is_rendered
from generator.problems.messages import plural, quote
from generator.review.snapshots import (
    RECORDINGS,
    Blobs,
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

    `judged` are the definitions with all their files: those of which a file changed, or
    a blob of another definition that their workloads name. Of others head has at least
    the definition's own file, and base only names.
    """

    base: Path
    head: Path
    revisions: Revisions
    sides: Sides
    sorted: Sorted
    judged: Collection[Key]


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
    with TemporaryDirectory(prefix="trace-dataset-review-") as name:
        lying = None if revisions.head else dataset
        yield write_sides(revisions, sides, repository.blobs, Path(name), lying)


def write_sides(
    revisions: Revisions,
    sides: Sides,
    blobs: Blobs,
    folder: Path,
    lying: Path | None = None,
) -> Sources:
    """Write what a review reads of both sides below `folder`.

    Head is not written where it is `lying` in a folder. Raises GitError, and what
    `blobs` raises.
    """
    found = sort_changes(sides.changed)
    base, head = folder / "base", lying or folder / "head"
    judged = {*found.definitions, *_touched(sides, blobs, folder / "named", lying)}
    op_types = {op_type for op_type, _ in judged}
    written = {base: sides.base} if lying else {base: sides.base, head: sides.head}
    for side, tree in written.items():
        shallow, hollow = {}, set()
        for path, entry in tree.items():
            is_test = is_rendered(path)
            if side == base and (is_test or path.startswith(RECORDINGS)):
                continue
            owner = owner_of(path)
            if owner is not None and owner[0] not in judged:
                (op_type, name), kind = owner
                known = f"definitions/{op_type}/{name}.json" in tree
                # of a folder of blobs it matters only whether it has a definition
                if kind == "blobs" and known:
                    continue
                if side == base or kind != "definition":
                    hollow.add(path)
            elif is_test and path.rsplit("/", 1)[1][5:-3] not in op_types:
                hollow.add(path)
            shallow[path] = entry
        write_tree(blobs, shallow, side, hollow)
        lines = (f"workloads/{op_type}/{name}.jsonl" for op_type, name in judged)
        named = {path for line in lines for path in blobs_named(side, line)}
        elsewhere = {p: tree[p] for p in named if p in tree and p not in shallow}
        write_tree(blobs, elsewhere, side)
    return Sources(base, head, revisions, sides, found, judged)


def _touched(
    sides: Sides, blobs: Blobs, folder: Path, lying: Path | None
) -> Iterator[Key]:
    """Yield definitions whose workloads name a blob that is changed or gone."""
    gone = {p for p in sides.changed if p in sides.base and p.endswith(".safetensors")}
    gone = {p for p in gone if not p.startswith(RECORDINGS)}
    if not gone:
        return
    owners = ((path, owner_of(path)) for path in sides.head)
    lines = {path: o[0] for path, o in owners if o is not None and o[1] == "workloads"}
    if lying is None:
        write_tree(blobs, {path: sides.head[path] for path in lines}, folder)
    for path, key in lines.items():
        if blobs_named(lying or folder, path) & gone:
            yield key


def blobs_named(root: Path, path: str) -> set[str]:
    """Return the paths that a workload file names; what can't be read names none."""
    found = set()
    for _, line in read_json_lines(root, path).lines:
        try:
            inputs = line["workload"]["inputs"].values()
            found |= {
                str(value["path"]).removeprefix("./")
                for value in inputs
                if value.get("type") == "safetensors"
            }
        except (KeyError, TypeError, AttributeError):
            continue
    return found


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
