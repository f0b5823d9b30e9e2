"""Find what belongs to definitions: their solutions, traces and folders of blobs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from generator.discover import (
    entries,
    is_inside,
    misplaced,
    wrong_extension,
)
from generator.problems import Problem
from generator.rules.table import finding
from generator.wording import quote

Key = tuple[str, str]
"""An op_type and the name of a definition, as paths say them."""

BLOBS = "blob/workloads"


@dataclass
class Attached:
    """Hold the paths of each definition's solutions and traces, and what is wrong."""

    solutions: dict[Key, list[str]] = field(default_factory=dict)
    traces: dict[Key, list[str]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def discover_attached(root: Path, known: Callable[[Key], bool]) -> Attached:
    """Find solutions/, traces/ and blob/workloads/; a dataset may have none of them.

    What lies in a folder of a definition that is not `known` is an orphan.
    """
    found = Attached()
    for path, parts in _files(root, "solutions", 3, ".json", found.problems):
        _attach(found.solutions, "solution-orphan", path, parts[1:3], known, found)
    _find_traces(root, known, found)
    for path, parts in _folders(root, BLOBS, 2, found.problems):
        if not known((parts[0], parts[1])):
            message = f"There is no definition {quote(parts[1])} in op_type "
            message += f"{quote(parts[0])}, so no workload points here."
            found.problems.append(finding("blob-unused", path, message))
    return found


def _find_traces(root: Path, known: Callable[[Key], bool], found: Attached) -> None:
    """Read both places: traces/<author>/<op_type>/x.jsonl and traces/<op_type>/x.jsonl.

    The folder says which: files below the first level are of the second place.
    """
    for outer, (first,) in _folders(root, "traces", 1, found.problems):
        for entry in entries(root, outer, found.problems):
            path = f"{outer}/{entry.name}"
            if not is_inside(entry, os.path.realpath(root), path, found.problems):
                continue
            if entry.is_dir():
                for file, parts in _files(root, path, 0, ".jsonl", found.problems):
                    name = parts[-1].removesuffix(".jsonl")
                    key = [entry.name, name]
                    _attach(found.traces, "trace-orphan", file, key, known, found)
            elif entry.name.endswith(".jsonl"):
                message = "The traces lie without the folder of an author."
                found.problems.append(finding("trace-place", path, message))
                key = [first, entry.name.removesuffix(".jsonl")]
                _attach(found.traces, "trace-orphan", path, key, known, found)
            else:
                found.problems.append(wrong_extension(path, ".jsonl"))


def _attach(
    table: dict[Key, list[str]],
    orphan: str,
    path: str,
    names: list[str],
    known: Callable[[Key], bool],
    found: Attached,
) -> None:
    key = (names[0], names[1])
    if known(key):
        table.setdefault(key, []).append(path)
        return
    message = f"There is no definition {quote(key[1])} in op_type {quote(key[0])}."
    found.problems.append(finding(orphan, path, message))


def _folders(
    root: Path, top: str, depth: int, problems: list[Problem]
) -> Iterator[tuple[str, list[str]]]:
    """Yield (path, names below `top`) of the folders at a depth; files are misplaced."""
    if not os.path.lexists(root / top):
        return
    real_root = os.path.realpath(root)
    level = [(top, list[str]())]
    for _ in range(depth):
        below = []
        for folder, names in level:
            for entry in entries(root, folder, problems):
                path = f"{folder}/{entry.name}"
                if not is_inside(entry, real_root, path, problems):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    below.append((path, [*names, entry.name]))
                else:
                    problems.append(_too_high(path, top))
        level = below
    yield from level


def _files(
    root: Path, top: str, depth: int, extension: str, problems: list[Problem]
) -> Iterator[tuple[str, list[str]]]:
    """Yield (path, names below `top`) of the files in the folders at a depth."""
    real_root = os.path.realpath(root)
    folders = (
        [(top, list[str]())] if not depth else _folders(root, top, depth, problems)
    )
    for folder, names in folders:
        for entry in entries(root, folder, problems):
            path = f"{folder}/{entry.name}"
            if not is_inside(entry, real_root, path, problems):
                continue
            if entry.is_dir():
                problems.append(misplaced(path, top, extension))
            elif entry.name.endswith(extension):
                yield path, [*names, entry.name]
            else:
                problems.append(wrong_extension(path, extension))


def _too_high(path: str, top: str) -> Problem:
    message = f"Nothing reads this: files of {top}/ lie in deeper folders."
    return finding("path-depth", path, message)
