"""Find a dataset's files: which there are, and which lie where nothing reads them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from generator.problems import Problem
from generator.rules.table import finding
from generator.wording import one_line, quote

# of a dataset: what kernels returned
RECORDINGS = Path("blob") / "ground_truth"
_UNPORTABLE = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"|?*\\\ud800-\udfff]|[ .]$')
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")


@dataclass(frozen=True, order=True)
class DatasetFile:
    """Name one file `<kind>/<op_type>/<name>.<extension>`.

    `path` is relative to the dataset's root, with forward slashes; `op_type` and
    `name` are what the path says, which the content may contradict.
    """

    op_type: str
    name: str
    path: str


# the rules that leave nothing to work on
NOTHING_THERE = frozenset(("dataset-missing", "dataset-empty"))


@dataclass(frozen=True)
class Discovered:
    """Hold the files of one kind, sorted, the folders, and what does not belong."""

    files: tuple[DatasetFile, ...]
    op_types: tuple[str, ...]
    problems: tuple[Problem, ...]


def discover_definitions(root: Path) -> Discovered:
    """Find definitions/<op_type>/<name>.json.

    A root without definitions/, and one without any definition in it, is a Problem.
    """
    if not os.path.isdir(root / "definitions"):
        if not os.path.isdir(root):
            message = f"There is no folder {quote(str(root), 200)}."
        else:
            message = f"The folder {quote(str(root), 200)} has no definitions/."
        return Discovered((), (), (finding("dataset-missing", "definitions", message),))
    found = _scan(root, "definitions", ".json")
    if found.files or any(p.severity.value == "error" for p in found.problems):
        return found
    message = f"There are no definitions in {quote(str(root), 200)}."
    empty = finding("dataset-empty", "definitions", message)
    return Discovered(found.files, found.op_types, (*found.problems, empty))


def discover_workloads(root: Path) -> Discovered:
    """Find workloads/<op_type>/<definition>.jsonl; a dataset may have none."""
    if not os.path.lexists(root / "workloads"):
        return Discovered((), (), ())
    return _scan(root, "workloads", ".jsonl")


def _scan(root: Path, kind: str, extension: str) -> Discovered:
    problems: list[Problem] = []
    files: list[DatasetFile] = []
    op_types: list[str] = []
    real_root = os.path.realpath(root)
    for folder in entries(root, kind, problems):
        path = f"{kind}/{folder.name}"
        if not is_inside(folder, real_root, path, problems):
            continue
        if not folder.is_dir():
            problems.append(misplaced(path, kind, extension))
            continue
        op_types.append(folder.name)
        for entry in entries(root, path, problems):
            inner = f"{path}/{entry.name}"
            if not is_inside(entry, real_root, inner, problems):
                continue
            # A folder named x.json was meant to be a file: reading it says so.
            if entry.name.endswith(extension):
                name = entry.name.removesuffix(extension)
                files.append(DatasetFile(folder.name, name, inner))
            elif entry.is_dir():
                problems.append(misplaced(inner, kind, extension))
            else:
                problems.append(wrong_extension(inner, extension))
    return Discovered(tuple(sorted(files)), tuple(op_types), tuple(problems))


def entries(
    root: Path, folder: str, problems: list[Problem]
) -> Sequence[os.DirEntry[str]]:
    """Return what is in a folder, sorted; names beginning with a dot are skipped."""
    try:
        with os.scandir(root / folder) as entries:
            visible = [e for e in entries if not e.name.startswith(".")]
    except OSError as error:
        reason = one_line(error.strerror or str(error))
        message = f"The folder can't be listed: {reason}."
        problems.append(finding("directory-unreadable", folder, message))
        return ()
    visible.sort(key=lambda e: e.name)
    problems += _names(folder, [entry.name for entry in visible])
    return visible


def is_portable(name: str) -> bool:
    """Return whether all systems can hold a file or folder of that name."""
    return not (_UNPORTABLE.search(name) or _RESERVED.fullmatch(name))


def _names(folder: str, names: Sequence[str]) -> Iterator[Problem]:
    """Yield Problems for names that other systems can't hold, or not side by side."""
    first: dict[str, str] = {}
    for name in names:
        path = f"{folder}/{name}"
        if not is_portable(name):
            message = f"The name {quote(name)} can't be used on all systems."
            yield finding("path-unportable", path, message)
        other = first.setdefault(name.casefold(), name)
        # two definitions have a rule of their own, on their names
        if other != name and not (
            folder.count("/") == 1 and path[:12] == "definitions/"
        ):
            message = f"The name differs only by case from {quote(other)}."
            yield finding("path-case", path, message)


def is_inside(
    entry: os.DirEntry[str], real_root: str, path: str, problems: list[Problem]
) -> bool:
    if not entry.is_symlink():
        return True
    target = os.path.realpath(entry.path)
    if os.path.commonpath((real_root, target)) == real_root:
        return True
    message = f"The symbolic link leads out of the dataset, to {quote(target, 200)}."
    problems.append(finding("path-outside", path, message))
    return False


def misplaced(path: str, kind: str, extension: str) -> Problem:
    message = f"Nothing reads this: {kind} lie at {kind}/<op_type>/<name>{extension}."
    fix = f"Move it to {kind}/<op_type>/<name>{extension}, or remove it."
    return finding("path-depth", path, message, fix=fix)


def wrong_extension(path: str, extension: str) -> Problem:
    message = f"Nothing reads this: its name does not end in {extension}."
    return finding("path-extension", path, message)
