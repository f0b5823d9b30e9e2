"""Sort the changed files of a dataset by the definition that they belong to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from generator.dataset.artifacts import Key
from generator.dataset.paths import is_dataset, is_evidence, is_rendered

UNRECORDED = "blob/ground_truth/unrecorded.json"
"""Says which definitions have no recording, and why."""

Files = dict[str, list[str]]
"""The files of one definition: kind → paths, sorted."""


@dataclass
class Sorted:
    """Hold the changed files: of definitions, evidence, rendered tests, and the rest.

    `misplaced` lie in a dataset's folders, in places that nothing reads.
    """

    definitions: dict[Key, Files] = field(default_factory=dict)
    evidence: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    misplaced: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def sort_changes(paths: Iterable[str]) -> Sorted:
    """Return the changed files by kind, in the order of their names."""
    found = Sorted()
    for path in sorted(paths):
        owner = owner_of(path)
        if owner is not None:
            key, kind = owner
            found.definitions.setdefault(key, {}).setdefault(kind, []).append(path)
        elif is_evidence(path) or path == UNRECORDED:
            found.evidence.append(path)
        elif is_rendered(path):
            found.tests.append(path)
        elif is_dataset(path):
            found.misplaced.append(path)
        else:
            found.others.append(path)
    return found


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
    return None
