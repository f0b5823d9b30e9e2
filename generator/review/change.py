"""Change of one definition and of the files that belong to it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from generator.dataset.artifacts import Key
from generator.dataset.changes import Files
from generator.dataset.definition import LoadedDefinition
from generator.dataset.json_file import read_json_lines
from generator.dataset.paths import DatasetFile
from generator.dataset.python_source import forget_trees
from generator.problems.messages import one_line
from generator.review.definition_diff import Difference, compare
from generator.review.sources import BaseAndHead
from generator.review.tree import Tree
from generator.rules.load import load_file

_AT_ONCE = 8
"""Definitions whose trees are kept together: a tree takes a hundred times its text."""

_Lines = dict[str, tuple[dict[str, Any], dict[str, Any]]]


@dataclass(frozen=True)
class WorkloadCounts:
    """Count the workloads of both sides; `ranges` are the variable axes' in head."""

    base: int
    head: int
    added: int
    removed: int
    changed: int
    ranges: Mapping[str, tuple[int, int]]

    @property
    def said_ranges(self) -> str:
        """Return the ranges of the variable axes: `batch_size 1 to 64`."""
        shown = (
            f"{name} {low}" if low == high else f"{name} {low} to {high}"
            for name, (low, high) in self.ranges.items()
        )
        return one_line(", ".join(shown), 300)


@dataclass(frozen=True)
class Change:
    """The change of one definition.

    `kind` is new, removed, renamed, changed, or attached where only files beside the
    definition changed. `old` and `new` are None where there is no side or it can't be
    read. `files` maps kinds to how many were added, removed, changed.
    """

    kind: str
    key: Key
    path: str
    old_path: str
    old: LoadedDefinition | None
    new: LoadedDefinition | None
    differences: tuple[Difference, ...]
    workloads: WorkloadCounts | None
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

    def as_dict(self) -> dict[str, Any]:
        """Return what a report says of it."""
        return {
            "kind": self.kind,
            "op_type": self.key[0],
            "name": self.name,
            "path": self.path,
            "old_path": self.old_path,
            "computes": self.computes,
            "differences": self.differences,
            "workloads": self.workloads,
            "files": self.files,
        }


def make_changes(
    definitions: Mapping[Key, Files],
    sides: BaseAndHead,
    base: Path,
    head: Path,
    known: Mapping[str, LoadedDefinition] | None = None,
) -> list[Change]:
    """Return what happened to each definition, renamed ones told from new ones.

    `known` maps paths of head to their definitions, where they were loaded before.
    """
    old: dict[Key, LoadedDefinition | None] = {}
    new: dict[Key, LoadedDefinition | None] = {}
    differences: dict[Key, tuple[Difference, ...]] = {}
    # side by side, so that a text is parsed once and its tree can go soon
    for number, key in enumerate(definitions, 1):
        path = _path(key)
        one = old[key] = _load(base, key, sides.base)
        other = _load(head, key, sides.head) if known is None else known.get(path)
        new[key] = other
        if one and other:
            differences[key] = tuple(compare(one, other))
        if number % _AT_ONCE == 0:
            forget_trees()
    was = {key: sides.base[p] for key in definitions if (p := _path(key)) in sides.base}
    now = {key: sides.head[p] for key in definitions if (p := _path(key)) in sides.head}
    gone = [key for key in was if key not in now]
    renamed: dict[Key, Key] = {}
    for key in (key for key in now if key not in was):
        for before in gone:
            one, other = old[before], new[key]
            is_alike = one and other and _substance(one) == _substance(other)
            if was[before].oid == now[key].oid or is_alike:
                renamed[key] = before
                differences[key] = tuple(compare(one, other)) if one and other else ()
                gone.remove(before)
                break
    changes = []
    for key, files in definitions.items():
        if key in renamed.values():
            continue
        before = renamed.get(key, key)
        kind = "changed" if "definition" in files else "attached"
        if (key in was) != (key in now):
            kind = "renamed" if before != key else "new" if key in now else "removed"
        one, other = old[before], new[key]
        lines = _lines(base, before, sides.base), _lines(head, key, sides.head)
        changes.append(
            Change(
                kind,
                key,
                _path(key),
                _path(before),
                one,
                other,
                differences.get(key, ()),
                None if lines == (None, None) else _workloads(*lines, other),
                {
                    of_kind: Counter(_what(path, sides) for path in paths)
                    for of_kind, paths in files.items()
                },
            )
        )
    return changes


def _path(key: Key) -> str:
    return f"definitions/{key[0]}/{key[1]}.json"


def _load(root: Path, key: Key, tree: Tree) -> LoadedDefinition | None:
    path = _path(key)
    # a link could lead anywhere: validation says what is wrong with it
    if path not in tree or not tree[path].is_file:
        return None
    return load_file(root, DatasetFile(*key, path))[0]


def _substance(definition: LoadedDefinition) -> tuple[Any, ...]:
    """Return what a definition keeps that gets another name."""
    return (
        definition.reference,
        list(definition.inputs),
        list(definition.outputs),
        definition.const_axes,
    )


def _what(path: str, sides: BaseAndHead) -> str:
    if path not in sides.base:
        return "added"
    return "changed" if path in sides.head else "removed"


def _workloads(
    before: _Lines | None, after: _Lines | None, definition: LoadedDefinition | None
) -> WorkloadCounts:
    old, new = before or {}, after or {}
    ranges: dict[str, tuple[int, int]] = {}
    for name in definition.var_axes if definition is not None else ():
        values = [axes[name] for _, axes in new.values() if type(axes.get(name)) is int]
        if values:
            ranges[name] = (min(values), max(values))
    both = old.keys() & new.keys()
    text = partial(json.dumps, sort_keys=True)
    changed = sum(text(old[uuid][0]) != text(new[uuid][0]) for uuid in both)
    counts = (len(new) - len(both), len(old) - len(both), changed)
    return WorkloadCounts(len(old), len(new), *counts, ranges)


def _lines(root: Path, key: Key, tree: Tree) -> _Lines | None:
    """Return uuid → workload and axes; a line without a uuid has its number for one."""
    path = f"workloads/{key[0]}/{key[1]}.jsonl"
    if path not in tree or not tree[path].is_file:
        return None
    lines: _Lines = {}
    for number, line in read_json_lines(root, path).lines:
        workload = line.get("workload") if isinstance(line, dict) else None
        workload = workload if isinstance(workload, dict) else {}
        uuid, axes = workload.get("uuid"), workload.get("axes")
        name = uuid if isinstance(uuid, str) else f"line {number}"
        lines[name] = (workload, axes if isinstance(axes, dict) else {})
    return lines
