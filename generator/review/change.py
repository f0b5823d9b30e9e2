"""What a change does to one definition and to what belongs to it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generator.dataset.artifacts import Key
from generator.dataset.changes import Files
from generator.dataset.definition import Definition
from generator.dataset.json_file import read_json_lines
from generator.dataset.paths import DatasetFile
from generator.problems.messages import one_line
from generator.review.definition_diff import Difference, compare
from generator.review.snapshots import Sides
from generator.rules.load import load_file


@dataclass(frozen=True)
class Workloads:
    """Count the workloads of both sides; `ranges` are the variable axes' in head."""

    base: int
    head: int
    added: int
    removed: int
    changed: int
    ranges: Mapping[str, tuple[int, int]]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return {**vars(self), "ranges": {n: list(r) for n, r in self.ranges.items()}}


@dataclass(frozen=True)
class Change:
    """Hold what happened to one definition.

    `kind` is new, removed, renamed, changed, or attached where only files beside the
    definition changed. `old` and `new` are None where there is no side or it can't be
    read. `computes` says that another thing is computed, called or judged than before.
    """

    kind: str
    key: Key
    path: str
    old_path: str
    old: Definition | None
    new: Definition | None
    differences: tuple[Difference, ...]
    workloads: Workloads | None
    files: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the name by the definition's path."""
        return self.key[1]

    @property
    def computes(self) -> bool:
        """Return whether evidence on the text before is none on this one."""
        if self.kind == "attached":
            return False
        if self.old is None or self.new is None:
            return True
        return any(d.computes for d in self.differences)

    def owns(self, file: str) -> bool:
        """Return whether a file belongs to the definition, by its path."""
        op_type, name = self.key
        if file == self.path:
            return True
        parts = file.split("/")
        stems = {parts[-1].removesuffix(".jsonl"), *parts[-2:-1]}
        return op_type in parts and name in stems

    def workloads_ranges(self) -> str:
        """Return the ranges of the variable axes: `batch_size 1 to 64`."""
        if self.workloads is None:
            return ""
        shown = (
            f"{name} {low}" if low == high else f"{name} {low} to {high}"
            for name, (low, high) in self.workloads.ranges.items()
        )
        return one_line(", ".join(shown), 300)

    def as_dict(self) -> dict[str, Any]:
        """Return what a report says of it, as plain JSON values."""
        return {
            "kind": self.kind,
            "op_type": self.key[0],
            "name": self.name,
            "path": self.path,
            "old_path": self.old_path,
            "computes": self.computes,
            "differences": [d.as_dict() for d in self.differences],
            "workloads": self.workloads.as_dict() if self.workloads else None,
            "files": {kind: dict(counts) for kind, counts in self.files.items()},
        }


def make_changes(
    definitions: Mapping[Key, Files], sides: Sides, base: Path, head: Path
) -> list[Change]:
    """Return what happened to each definition, renamed ones told from new ones."""
    old = {key: _load(base, key, sides.base) for key in definitions}
    new = {key: _load(head, key, sides.head) for key in definitions}
    gone = [k for k in definitions if _path(k) in sides.base.keys() - sides.head.keys()]
    come = [k for k in definitions if _path(k) in sides.head.keys() - sides.base.keys()]
    renamed = _renamed(gone, come, old, new, sides)
    made = []
    for key, files in definitions.items():
        if key in renamed.values():
            continue
        before = renamed.get(key, key)
        one, other = old[before], new[key]
        kind = _kind(key, before, sides, files)
        made.append(
            Change(
                kind,
                key,
                _path(key),
                _path(before),
                one,
                other,
                tuple(compare(one, other)) if one and other else (),
                _workloads(base, head, before, key, other, sides),
                _counted(files, sides),
            )
        )
    return made


def _path(key: Key) -> str:
    return f"definitions/{key[0]}/{key[1]}.json"


def _load(root: Path, key: Key, tree: Mapping[str, Any]) -> Definition | None:
    path = _path(key)
    # a link could lead anywhere: validation says what is wrong with it
    if path not in tree or not tree[path].is_file:
        return None
    return load_file(root, DatasetFile(key[0], key[1], path))[0]


def _kind(key: Key, before: Key, sides: Sides, files: Files) -> str:
    is_old, is_new = _path(before) in sides.base, _path(key) in sides.head
    if not is_new:
        return "removed" if is_old else "attached"
    if not is_old:
        return "new"
    if before != key:
        return "renamed"
    return "changed" if "definition" in files.of_kind else "attached"


def _renamed(
    gone: Iterable[Key],
    come: Iterable[Key],
    old: Mapping[Key, Definition | None],
    new: Mapping[Key, Definition | None],
    sides: Sides,
) -> dict[Key, Key]:
    """Return new → old name of those that have the same reference and interface."""
    left = list(gone)
    found: dict[Key, Key] = {}
    for key in come:
        definition = new[key]
        for other in left:
            known = old[other]
            if sides.head[_path(key)].oid == sides.base[_path(other)].oid or (
                definition is not None
                and known is not None
                and _substance(definition) == _substance(known)
            ):
                found[key] = other
                left.remove(other)
                break
    return found


def _substance(definition: Definition) -> tuple[Any, ...]:
    return (
        definition.reference,
        list(definition.inputs),
        list(definition.outputs),
        definition.const_axes,
    )


def _counted(files: Files, sides: Sides) -> dict[str, dict[str, int]]:
    """Return kind → added, removed, changed → how many files."""
    counted: dict[str, dict[str, int]] = {}
    for kind, paths in files.of_kind.items():
        counts = counted.setdefault(kind, {})
        for path in paths:
            if path not in sides.base:
                what = "added"
            else:
                what = "removed" if path not in sides.head else "changed"
            counts[what] = counts.get(what, 0) + 1
    return counted


def _workloads(
    base: Path,
    head: Path,
    old_key: Key,
    key: Key,
    definition: Definition | None,
    sides: Sides,
) -> Workloads | None:
    before = _lines(base, old_key, sides.base)
    after = _lines(head, key, sides.head)
    if before is None and after is None:
        return None
    old, new = before or {}, after or {}
    ranges: dict[str, tuple[int, int]] = {}
    names = set(definition.var_axes) if definition is not None else set()
    for _, axes in new.values():
        for name, value in axes.items():
            if name in names and type(value) is int:
                low, high = ranges.get(name, (value, value))
                ranges[name] = (min(low, value), max(high, value))
    both = old.keys() & new.keys()
    return Workloads(
        len(old),
        len(new),
        len(new.keys() - old.keys()),
        len(old.keys() - new.keys()),
        sum(old[uuid][0] != new[uuid][0] for uuid in both),
        ranges,
    )


def _lines(
    root: Path, key: Key, tree: Mapping[str, Any]
) -> dict[str, tuple[str, dict[str, Any]]] | None:
    """Return uuid → text and axes; a line without a uuid has its number for one."""
    path = f"workloads/{key[0]}/{key[1]}.jsonl"
    if path not in tree or not tree[path].is_file:
        return None
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for number, line in read_json_lines(root, path).lines:
        workload = line.get("workload") if isinstance(line, dict) else None
        workload = workload if isinstance(workload, dict) else {}
        uuid, axes = workload.get("uuid"), workload.get("axes")
        name = uuid if isinstance(uuid, str) else f"line {number}"
        text = json.dumps(workload, sort_keys=True)
        found[name] = (text, axes if isinstance(axes, dict) else {})
    return found
