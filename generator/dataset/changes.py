"""Sort the changed files of a dataset by the definition that they belong to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from generator.dataset.artifacts import Key
from generator.dataset.paths import (
    is_dataset,
    is_evidence,
    is_rendered,
    is_written_by_rendering,
)

UNRECORDED = "blob/ground_truth/unrecorded.json"
"""Says which definitions have no recording, and why."""

_RUNS = re.compile(
    # a checkout's own software and tests; what pytest imports from beside a test
    r"(?i)^(generator|kernel_judge|templates|tools|tests|benchmarks|\.github|\.git|oracles)/"
    r"|(^|/)(reference_support|__pycache__|[^/]*\.(dist|egg)-info)/"
    # modules, extensions, archives on sys.path, shell, templates, configuration
    r"|\.(py[a-z]?|ipynb|pth|so(\.[0-9.]+)?|dylib|dll|whl|egg|zip|tar|gz|sh|bash|bat|ps1"
    r"|c|cc|cpp|cu|cuh|h|hpp|jinja2?|j2|toml|ini|cfg|conf|ya?ml|lock|env)$"
    # obeyed by name: git, pip, make, docker, direnv, LFS, editors
    r"|(^|/)(\.git[a-z]+|\.lfsconfig|\.envrc|\.netrc|\.pypirc|\.python-version|makefile"
    r"|dockerfile|jenkinsfile|justfile|noxfile|codeowners"
    r"|(requirements|constraints)[^/]*\.txt|entry_points\.txt)$"
)
_PAGES = re.compile(r"(README\.md|LICENSE|NOTICE|(tables|assets)/[^.][^/]*)")

Files = dict[str, list[str]]
"""The files of one definition: kind → paths, sorted."""


@dataclass
class Sorted:
    """The changed files: of definitions, evidence, rendered tests, and the rest.

    `misplaced` lie in a dataset's folders, in places that nothing reads.
    """

    definitions: dict[Key, Files] = field(default_factory=dict)
    evidence: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    misplaced: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def sort_changes(paths: Iterable[str]) -> Sorted:
    """Return the changed files by kind, in the order of their names."""
    changes = Sorted()
    for path in sorted(paths):
        owner = owner_of(path)
        if owner is not None:
            key, kind = owner
            changes.definitions.setdefault(key, {}).setdefault(kind, []).append(path)
        elif is_evidence(path) or path == UNRECORDED:
            changes.evidence.append(path)
        elif is_rendered(path):
            changes.tests.append(path)
        elif is_dataset(path):
            changes.misplaced.append(path)
        else:
            changes.others.append(path)
    return changes


def owner_of(path: str) -> tuple[Key, str] | None:
    """Return the definition that a path belongs to, and its kind; None for others."""
    parts = path.split("/")
    match parts:
        case ["definitions", op_type, file] if file.endswith(".json"):
            return (op_type, file.removesuffix(".json")), "definition"
        case ["workloads", op_type, file] if file.endswith(".jsonl"):
            return (op_type, file.removesuffix(".jsonl")), "workloads"
        case ["blob", "workloads", op_type, name, _]:
            return (op_type, name), "blobs"
        case ["blob", "ground_truth", op_type, file] if file.endswith(".safetensors"):
            return (op_type, file.removesuffix(".safetensors")), "recording"
        case ["solutions", _, op_type, name, file] if file.endswith(".json"):
            return (op_type, name), "solutions"
        case ["traces", _, op_type, file] if file.endswith(".jsonl"):
            return (op_type, file.removesuffix(".jsonl")), "traces"
        case ["traces", op_type, file] if file.endswith(".jsonl"):
            return (op_type, file.removesuffix(".jsonl")), "traces"
        case ["custom_inputs", op_type, file] if file.endswith(".py"):
            return (op_type, file.removesuffix(".py")), "custom_inputs"
        case ["oracles", op_type, file] if file.endswith(".py"):
            return (op_type, file.removesuffix(".py")), "oracle"
    return None


class PathClass(str, Enum):
    """The treatment of a path in a dataset's repository by the commands."""

    DATA = "data"
    """Validated and compared; nothing runs it but a sandbox or a rendered test."""

    SOURCE = "source"
    """Python text that gen-tests copies into rendered tests, which pytest runs."""

    RENDERED = "rendered"
    """A path that gen-tests writes; pytest runs it, whoever wrote the file."""

    PAGES = "pages"
    """The card's files: read by people and by `card`, never run."""

    RUNS = "runs"
    """Imported, executed or obeyed by Python, pytest, git or CI, without being asked."""

    UNKNOWN = "unknown"
    """Nothing here knows what reads it."""


def class_of(path: str) -> PathClass:
    """Return the class of a path below a repository's root.

    A path is DATA only where a reader of the dataset expects exactly that path: another
    file in a dataset's folder is of the class that its name gives it. A link has the
    class of its own path; what it leads to is not asked.
    """
    if is_written_by_rendering(path):
        return PathClass.RENDERED
    owner = owner_of(path)
    if owner is not None and owner[1] in ("custom_inputs", "oracle"):
        return PathClass.SOURCE
    if _RUNS.search(path):
        return PathClass.RUNS
    if owner is not None or is_evidence(path) or path == UNRECORDED:
        return PathClass.DATA
    return PathClass.PAGES if _PAGES.fullmatch(path) else PathClass.UNKNOWN
