"""Choose the two revisions of a review, and bring both into folders."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from generator.dataset.artifacts import Key
from generator.dataset.changes import Files, Sorted, owner_of, sort_changes
from generator.dataset.json_file import read_json_lines
from generator.dataset.paths import is_dataset, is_rendered
from generator.problems import Failure
from generator.problems.messages import plural, quote

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
RECORDINGS = "blob/ground_truth/"
MAX_TOTAL = 4 * 1024 * 1024 * 1024
"""Bytes that are copied for a review at most."""

MAX_FILES = 2_000_000
_ODD = re.compile(r"(?i)(^|/)(\.{0,2}|\.git)(/|$)|\0")


@dataclass(frozen=True)
class TreeEntry:
    """Hold one file of a tree: its mode (100644, 120000 a link, 160000 a submodule)."""

    mode: str
    oid: str

    @property
    def is_file(self) -> bool:
        """Return whether it is an ordinary file."""
        return self.mode.startswith("100")

    @property
    def is_link(self) -> bool:
        """Return whether it is a symbolic link."""
        return self.mode == "120000"


HOLLOW = TreeEntry("100644", "")
"""Stands for a file of which only the name matters: it is written without content."""

Tree = dict[str, TreeEntry]
"""Path relative to the dataset's root → entry; names are decoded by the file system."""


@dataclass(frozen=True)
class Sides:
    """Hold the files of both sides: path below the dataset's root → object id.

    `base` and `head` are what git has, or the same computed from the working tree.
    `refused` are paths of either side that no checkout would have.
    """

    base: Tree
    head: Tree
    refused: tuple[str, ...] = ()

    @cached_property
    def changed(self) -> frozenset[str]:
        """Return the paths whose content or kind is not the same on both sides."""
        base, head = (
            {(path, entry.oid, entry.mode[:2]) for path, entry in side.items()}
            for side in (self.base, self.head)
        )
        return frozenset(path for path, *_ in base ^ head)

    @cached_property
    def _of_head(self) -> Mapping[Key, Files]:
        return sort_changes(self.head).definitions

    def files_of(self, key: Key, kind: str) -> Sequence[str]:
        """Return the files of a kind that a definition has in head, sorted."""
        return self._of_head.get(key, {}).get(kind, ())


def refused(tree: Tree) -> tuple[str, ...]:
    """Return paths that no checkout would have: upwards, absolute, into .git, twice."""
    links = {path for path, entry in tree.items() if not entry.is_file}
    found = {path for path in tree if _ODD.search(path)}
    if links:
        found |= {path for path in tree if not links.isdisjoint(_folders(path))}
    return tuple(sorted(found))


def _folders(path: str) -> Iterator[str]:
    """Yield the folders that a path lies in."""
    while path := path.rpartition("/")[0]:
        yield path


Blobs = Callable[[Sequence[str]], Iterator[bytes]]
"""Yields the content of each object, one after the other in memory."""


def check_total(size: int) -> None:
    """Raise Failure for more bytes than are copied for a review."""
    if size > MAX_TOTAL:
        raise Failure(
            f"The review needs {size >> 20} MiB, more than the {MAX_TOTAL >> 20} MiB "
            "that are copied for one."
        )


def write_tree(blobs: Blobs, tree: Tree, folder: Path) -> None:
    """Write the dataset's files of a tree below `folder`.

    Links are made last and lead where they led, so that validation can say so. Raises
    Failure.
    """
    bad = set(refused(tree))
    wanted = [
        path
        for path, entry in tree.items()
        if (is_dataset(path) or is_rendered(path))
        and (entry.is_file or entry.is_link)
        and path not in bad
    ]
    wanted.sort(key=lambda path: tree[path].is_link)
    contents = blobs([tree[path].oid for path in wanted if tree[path] != HOLLOW])
    folders = set()
    for path in wanted:
        entry, place, parent = tree[path], folder / path, path.rpartition("/")[0]
        content = b"" if entry == HOLLOW else next(contents)
        try:
            if parent not in folders:
                os.makedirs(folder / parent, exist_ok=True)
                folders.add(parent)
            if entry.is_link:
                os.symlink(os.fsdecode(content.replace(b"\0", b"")) or ".", place)
                continue
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
            with open(os.open(place, flags, 0o600), "wb") as stream:
                stream.write(content)
        except OSError as error:
            reason = error.strerror or "unknown"
            message = f"{quote(path, 200)} can't be written here: {reason}."
            raise Failure(message) from None


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

    Raises Failure.
    """
    try:
        from generator.review.git import one_line_errors, open_repository
    except ImportError:
        raise Failure(NOT_INSTALLED) from None
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

    Head is not written where it is `lying` in a folder. Raises Failure, and what
    `blobs` raises.
    """
    found = sort_changes(sides.changed)
    base, head = folder / "base", lying or folder / "head"
    judged = {*found.definitions, *_touched(sides, blobs, folder / "named", lying)}
    op_types = {op_type for op_type, _ in judged}
    written = {base: sides.base} if lying else {base: sides.base, head: sides.head}
    for side, tree in written.items():
        os.makedirs(side)
        shallow: Tree = {}
        for path, entry in tree.items():
            owner = owner_of(path)
            if side == base and (is_rendered(path) or path.startswith(RECORDINGS)):
                continue
            if is_rendered(path) and path.rsplit("/", 1)[1][5:-3] not in op_types:
                continue
            if owner is not None and owner[0] not in judged:
                (op_type, name), kind = owner
                # blobs and recordings matter to no other definition; workloads have the
                # name of theirs, and are left out of both sides or of none
                known = f"definitions/{op_type}/{name}.json" in tree
                is_left_out = kind in ("blobs", "recording")
                is_left_out |= kind == "workloads" and lying is None
                if known and is_left_out:
                    continue
                if entry.is_file and (side == base or kind != "definition"):
                    entry = HOLLOW
            shallow[path] = entry
        write_tree(blobs, shallow, side)
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

    def sides(commit: str) -> tuple[Tree, Tree]:
        old = repository.tree(commit) if commit else {}
        if head is None:
            return old, repository.working_tree(root, commit or None, old)
        return old, repository.tree(tip) if tip else {}

    if tip is None:
        return Revisions("", "", "the checkout has no commit yet"), *sides("")
    shown = "" if head is None else tip
    found = _base(repository, tip, base)
    if found is None and head is None:
        old, new = sides(tip)
        if Sides(old, new).changed:
            return Revisions(tip, shown, "the last commit"), old, new
    commit, said = found or _before(repository, tip)
    return Revisions(commit, shown, said), *sides(commit)


def _base(
    repository: Repository, tip: str, asked: str | None
) -> tuple[str, str] | None:
    """Return the commit that was asked for, or where head left a branch, and why."""
    if asked is not None:
        wanted = repository.resolve(asked)
        common = repository.git.merge_base(wanted, tip)
        if common is None:
            if repository.git.is_shallow:
                raise Failure(
                    f"The shallow checkout has no commit that {quote(asked)} and head "
                    "share: fetch more (git fetch --unshallow)."
                )
            return wanted, f"{quote(asked)}, which shares no history with head"
        ahead, _ = repository.git.ahead_behind(wanted, common)
        if ahead:
            said = f"where head left {quote(asked)}, which is {plural(ahead, 'commit')}"
            return str(common), f"{said} further by now"
        return str(common), quote(asked)
    for name in DEFAULT_BRANCHES:
        branch = repository.find(name)
        left = repository.git.merge_base(branch, tip) if branch else None
        if left is not None and str(left) != tip:
            short = name.removeprefix("refs/").removeprefix("remotes/")
            return str(left), f"where head left {short.removeprefix('heads/')}"
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
