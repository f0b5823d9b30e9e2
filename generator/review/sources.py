"""Both sides of a review: their files, and what is read of them, in folders."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from generator.dataset.artifacts import Key
from generator.dataset.changes import Files, Sorted, owner_of, sort_changes
from generator.dataset.file_reading import opened, read_at_most
from generator.dataset.json_file import read_json_lines
from generator.dataset.paths import (
    DatasetFile,
    is_dataset,
    is_portable,
    is_rendered,
    is_written_by_rendering,
)
from generator.rendering.files import SUMS
from generator.review.settings import SETTINGS
from generator.review.treatment import (
    DOCUMENTS,
    LICENCES,
    Treatment,
    holds_software,
    in_software,
    is_compared,
    treatment_of,
)
from generator.review.tree import HOLLOW, Blobs, Tree, TreeEntry, write_tree
from generator.rules.accepted import ACCEPTED
from generator.rules.proofs import BACKWARD

TESTS = "tests/references/"
SUPPORT = f"{TESTS}reference_support/"
RECORDINGS = "blob/ground_truth/"


@dataclass(frozen=True)
class BaseAndHead:
    """The files of both sides: path below the dataset's root → object id.

    `base` and `head` are what git has, or the same computed from the working tree.
    `refused` are paths of either side that no checkout would have. `outside` are those
    above the dataset's root that are not the same, as `../x`. `moved` are those that the
    base's branch has otherwise by now, and on which the judgement depends.
    """

    base: Tree
    head: Tree
    refused: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()

    @cached_property
    def changed(self) -> frozenset[str]:
        """Return the paths whose content, kind or mode is not the same on both sides."""
        return frozenset(path for path, _ in self.base.items() ^ self.head.items())

    @cached_property
    def treatments(self) -> Mapping[str, Treatment]:
        """Return how the review treats each changed path, sorted by path."""
        inside = {
            path: treatment_of(path, self.base.get(path), self.head.get(path))
            for path in sorted(self.changed)
        }
        if holds_software(self.base) or holds_software(self.head):
            inside = {path: in_software(t, path) for path, t in inside.items()}
        return {**inside, **{path: treatment_of(path) for path in self.outside}}

    @cached_property
    def _of_head(self) -> Mapping[Key, Files]:
        return sort_changes(self.head).definitions

    def files_of(self, key: Key, kind: str) -> Sequence[str]:
        """Return the files of a kind that a definition has in head, sorted."""
        return self._of_head.get(key, {}).get(kind, ())


@dataclass(frozen=True)
class Revisions:
    """Both sides of a comparison; `base` is a commit, or empty where nothing is before.

    `head` is empty for the working tree as it is. `said` explains the choice. `branch` is
    the commit that the base's branch has, where it went on since head left it.
    """

    base: str
    head: str
    said: str
    branch: str = ""


@dataclass(frozen=True)
class Sources:
    """Two folders with the sides of a review, and what changed between them.

    `judged` are the definitions with all their files: those of which a file changed, or
    a blob of another definition that their workloads name. Of the others, which are the
    same on both sides, `unwritten_base` and `unwritten_head` lie in no folder: only
    `blobs` has them.
    """

    base: Path
    head: Path
    revisions: Revisions
    sides: BaseAndHead
    sorted: Sorted
    judged: Collection[Key]
    blobs: Blobs
    unwritten_base: tuple[DatasetFile, ...] = ()
    unwritten_head: tuple[DatasetFile, ...] = ()

    def read(self, path: str, most: int, *, of_base: bool = False) -> bytes | None:
        """Return a file that was written of a side; None where there is none to read.

        A file of over `most` bytes is none.
        """
        tree = self.sides.base if of_base else self.sides.head
        if path not in tree or not tree[path].is_file:
            return None
        if path in self._unwritten[of_base]:
            data = next(self.blobs([tree[path].oid]))
            return data if len(data) <= most else None
        try:
            with opened(self.base if of_base else self.head, path) as descriptor:
                data = read_at_most(descriptor, most + 1)
        except (OSError, ValueError):
            return None
        return data if len(data) <= most else None

    @cached_property
    def _unwritten(self) -> tuple[frozenset[str], frozenset[str]]:
        head, base = self.unwritten_head, self.unwritten_base
        return frozenset(f.path for f in head), frozenset(f.path for f in base)


def write_sides(
    revisions: Revisions,
    sides: BaseAndHead,
    blobs: Blobs,
    folder: Path,
    lying: Path | None = None,
) -> Sources:
    """Write what a review reads of both sides below `folder`.

    Head is not written where it is `lying` in a folder. Raises Failure, and what
    `blobs` raises.
    """
    changes = sort_changes(sides.changed)
    base, head = folder / "base", lying or folder / "head"
    judged = {*changes.definitions, *_touched(sides, blobs, folder / "named", lying)}
    op_types = {op_type for op_type, _ in judged}
    rendered = op_types_to_render(sides)
    # what a backward definition is proven by
    rendered |= {op_type.removesuffix(BACKWARD) for op_type, _ in judged}
    unwritten: dict[Path, list[DatasetFile]] = {base: [], head: []}
    written = {base: sides.base} if lying else {base: sides.base, head: sides.head}
    for side, tree in written.items():
        os.makedirs(side)
        shallow: Tree = {}
        for path, entry in tree.items():
            content = _what_is_read(path, entry, sides, op_types)
            owner = owner_of(path)
            if content is not None and owner is not None and owner[0] not in judged:
                (op_type, name), kind = owner
                # blobs and recordings matter to no other definition; workloads have the
                # name of theirs, and are left out of both sides or of none
                known = f"definitions/{op_type}/{name}.json" in tree
                is_left_out = kind in ("blobs", "recording")
                is_left_out |= kind == "workloads" and lying is None
                if known and is_left_out:
                    continue
                is_rendered = side == head and op_type in rendered
                if kind == "definition" and not is_rendered and _is_plain(path, entry):
                    unwritten[side].append(DatasetFile(op_type, name, path))
                    continue
                is_text = side == head and kind in (
                    "definition",
                    "custom_inputs",
                    "oracle",
                )
                if entry.is_file and not is_text:
                    content = HOLLOW
            is_recording = owner is not None and owner[1] == "recording"
            if content is not None and not (side == base and is_recording):
                shallow[path] = content
        write_tree(blobs, shallow, side)
        lines = (f"workloads/{op_type}/{name}.jsonl" for op_type, name in judged)
        named = {path for line in lines for path in blobs_named(side, line)}
        elsewhere = {p: tree[p] for p in named if p in tree and p not in shallow}
        write_tree(blobs, elsewhere, side)
    missing = tuple(unwritten[base]), tuple(unwritten[head])
    return Sources(base, head, revisions, sides, changes, judged, blobs, *missing)


def _is_plain(path: str, entry: TreeEntry) -> bool:
    """Return whether discovery takes a file of a definition as it is, without a word."""
    parts = path.split("/")
    return entry.is_file and all(
        is_portable(part) and not part.startswith(".") for part in parts
    )


def op_types_to_render(sides: BaseAndHead) -> set[str]:
    """Return the op_types whose tests a review renders: those of which a test changed.

    And those of which a definition did, and the test not. Of the files that all tests
    share, the op_type with the fewest definitions has as much; which helpers are rendered
    beside tests depends on all of them.
    """
    changed = [path for path in sides.changed if is_written_by_rendering(path)]
    known = Counter(p.split("/")[1] for p in sides.head if p.startswith("definitions/"))
    left = {*left_tests(sides)}
    if not changed or not known:
        return left
    if any(path.startswith(SUPPORT) for path in changed):
        return {*known}
    names = (path.removeprefix(TESTS) for path in changed)
    tests = {n[5:].removesuffix(".py") for n in names if n.startswith("test_")}
    tests |= {name.removesuffix("_custom_inputs") for name in tests}
    tests &= known.keys()
    return left | (tests or {min(known, key=lambda op_type: known[op_type])})


def left_tests(sides: BaseAndHead) -> dict[str, str]:
    """Return op_type → rendered test, where a definition changed and the test did not."""
    definitions = (
        path.split("/")
        for path in sides.changed
        if path.startswith("definitions/") and path in sides.head
    )
    op_types = {parts[1] for parts in definitions if len(parts) == 3}
    tests = {op_type: f"{TESTS}test_{op_type}.py" for op_type in op_types}
    unchanged = sides.head.keys() - sides.changed
    return {op_type: path for op_type, path in tests.items() if path in unchanged}


def _what_is_read(
    path: str, entry: TreeEntry, sides: BaseAndHead, op_types: Collection[str]
) -> TreeEntry | None:
    """Return the entry of a file that a review reads, None for others."""
    if is_written_by_rendering(path):
        is_named = path.rsplit("/", 1)[1] == SUMS
        is_named |= is_rendered(path) and path.rsplit("/", 1)[1][5:-3] in op_types
        return entry if is_named or path in sides.changed else None
    if is_dataset(path) or path in (SETTINGS, ACCEPTED):
        return entry
    if path not in sides.changed:
        return None
    is_shown = sides.treatments[path] in (DOCUMENTS, LICENCES)
    return entry if is_compared(path) or is_shown else None


def _touched(
    sides: BaseAndHead, blobs: Blobs, folder: Path, lying: Path | None
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
    blobs = set()
    for _, line in read_json_lines(root, path).lines:
        try:
            inputs = line["workload"]["inputs"].values()
            blobs |= {
                str(value["path"]).removeprefix("./")
                for value in inputs
                if value.get("type") == "safetensors"
            }
        except (KeyError, TypeError, AttributeError):
            continue
    return blobs
