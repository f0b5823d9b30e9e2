"""Find the files that belong to definitions: solutions, traces and blobs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from generator.dataset.paths import (
    PATH_DEPTH,
    entries,
    is_inside,
    misplaced,
    wrong_extension,
)
from generator.problems import Problem
from generator.problems.messages import quote
from generator.problems.rule import Rule, error, warning

WORKLOAD_ORPHAN = error(
    "workload-orphan",
    "A workload file belongs to no definition.",
    "Rename the file to its definition's op_type and name, or remove it.",
    "workloads/gemm/gone.jsonl without definitions/gemm/gone.json",
)
SOLUTION_ORPHAN = error(
    "solution-orphan",
    "A solution's path names a definition that the dataset does not have.",
    "Correct the folder, or add the definition.",
    "solutions/baseline/gemm/gone/x.json without definitions/gemm/gone.json",
)
TRACE_PLACE = warning(
    "trace-place",
    "Traces lie at traces/<op_type>/, without the author's folder.",
    "Move them to traces/<author>/<op_type>/<definition>.jsonl.",
    "traces/gemm/gemm_n8_k4.jsonl",
)
TRACE_ORPHAN = error(
    "trace-orphan",
    "A trace file's path names a definition that the dataset does not have.",
    "Correct the path, or add the definition.",
    "traces/baseline/gemm/gone.jsonl without definitions/gemm/gone.json",
)
BLOB_UNUSED = warning(
    "blob-unused",
    "No workload points to the blob.",
    "Remove the blob, or add the workload that it belongs to.",
    "a blob left behind after its line was removed",
)


Key = tuple[str, str]
"""An op_type and the name of a definition, as paths say them."""

BLOBS = "blob/workloads"


@dataclass
class Artifacts:
    """Hold the paths of each definition's solutions and traces, and Problems."""

    solutions: dict[Key, list[str]] = field(default_factory=dict)
    traces: dict[Key, list[str]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def discover_artifacts(root: Path, known: Callable[[Key], bool]) -> Artifacts:
    """Find solutions/, traces/ and blob/workloads/; a dataset may have none of them.

    A file of a definition that is not `known` is an orphan.
    """
    found = Artifacts()
    for path, parts in _files(root, "solutions", 3, ".json", found.problems):
        _attach(found.solutions, SOLUTION_ORPHAN, path, parts[1:3], known, found)
    _find_traces(root, known, found)
    for path, parts in _folders(root, BLOBS, 2, found.problems):
        if not known((parts[0], parts[1])):
            message = f"There is no definition {quote(parts[1])} in op_type "
            message += f"{quote(parts[0])}, so no workload points here."
            found.problems.append(BLOB_UNUSED.problem(path, message))
    return found


def _find_traces(root: Path, known: Callable[[Key], bool], found: Artifacts) -> None:
    """Read both places: traces/<author>/<op_type>/x.jsonl and traces/<op_type>/x.jsonl.

    Files right below the first level are of the second place.
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
                    _attach(found.traces, TRACE_ORPHAN, file, key, known, found)
            elif entry.name.endswith(".jsonl"):
                message = "The traces lie without the folder of an author."
                found.problems.append(TRACE_PLACE.problem(path, message))
                key = [first, entry.name.removesuffix(".jsonl")]
                _attach(found.traces, TRACE_ORPHAN, path, key, known, found)
            else:
                found.problems.append(wrong_extension(path, ".jsonl"))


def _attach(
    table: dict[Key, list[str]],
    orphan: Rule,
    path: str,
    names: list[str],
    known: Callable[[Key], bool],
    found: Artifacts,
) -> None:
    key = (names[0], names[1])
    if known(key):
        table.setdefault(key, []).append(path)
        return
    found.problems.append(orphan_of(orphan, path, key))


def orphan_of(rule: Rule, path: str, key: Key) -> Problem:
    """Return the Problem of a file whose path names a definition that is not there."""
    op_type, name = key
    message = f"There is no definition {quote(name)} in op_type {quote(op_type)}."
    return rule.problem(path, message)


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
    return PATH_DEPTH.problem(path, message)
