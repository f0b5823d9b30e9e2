"""Solutions: files of a dataset or of their own, as values; no code of them runs here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.dataset.artifacts import discover_artifacts
from generator.dataset.paths import DatasetFile
from generator.dataset.schema import read_checked
from generator.problems import Failure
from generator.problems.messages import did_you_mean, quote

_TVM_FFI = "tvm-ffi"


@dataclass(frozen=True)
class Solution:
    """Hold a solution: the JSON value, which fits the schema, and where it lies."""

    value: Mapping[str, Any]
    path: str

    @property
    def name(self) -> str:
        """Return the solution's name."""
        return str(self.value["name"])

    @property
    def author(self) -> str:
        """Return who wrote it."""
        return str(self.value["author"])

    @property
    def definition(self) -> str:
        """Return the name of the definition that it is of."""
        return str(self.value["definition"])

    @property
    def language(self) -> str:
        """Return python, triton, cpp, cuda or tilelang."""
        return str(self.value["spec"]["language"])

    @property
    def passes_outputs(self) -> bool:
        """Return whether it is called with its outputs, flashinfer-bench's default."""
        return bool(self.value["spec"].get("destination_passing_style", True))

    def how(self) -> dict[str, Any]:
        """Return what the worker builds it from."""
        spec = self.value["spec"]
        return {
            "language": self.language,
            "binding": spec.get("binding") or _TVM_FFI,
            "entry_point": spec["entry_point"],
            "sources": list(self.value["sources"]),
        }


def read_solutions(
    dataset: Path,
    definitions: Sequence[DatasetFile],
    named: Sequence[str],
    authors: Sequence[str],
) -> list[Solution]:
    """Return the solutions that are named, in that order, else all of definitions.

    A name is that of a file, or of a solution of the dataset. `authors` leaves only
    theirs. Raises Failure for one that is not there, or does not fit the schema.
    """
    if not named:
        chosen = {(file.op_type, file.name) for file in definitions}
        found = [
            _read(dataset, path, path)
            for key, paths in _lying(dataset).items()
            for path in sorted(paths)
            if key in chosen and (not authors or path.split("/")[1] in authors)
        ]
    else:
        found = [_named(dataset, name) for name in named]
    if not found:
        raise Failure("no solution is chosen: none is of that author or definition.")
    return found


def _named(dataset: Path, name: str) -> Solution:
    """Return the solution of a file, or of a name that the dataset has."""
    if name.endswith(".json"):
        return _read(Path(name).parent, Path(name).name, name)
    paths = {
        path.rpartition("/")[2].removesuffix(".json"): path
        for of_definition in _lying(dataset).values()
        for path in of_definition
    }
    if name not in paths:
        known = did_you_mean(name, paths)
        raise Failure(f"No solution is named {quote(name)}.{known}")
    return _read(dataset, paths[name], paths[name])


def _lying(dataset: Path) -> dict[tuple[str, str], list[str]]:
    """Return (op_type, definition) → the paths of its solutions."""
    found = discover_artifacts(dataset, lambda key: True).solutions
    return dict(sorted(found.items()))


def _read(root: Path, path: str, shown: str) -> Solution:
    read = read_checked(root, path, "solution")
    if not read.ok:
        raise Failure(f"{shown}: {read.problems[0].message} {read.problems[0].fix}")
    return Solution(read.value, shown)
