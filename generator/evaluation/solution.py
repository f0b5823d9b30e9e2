"""Solutions: files of a dataset or of their own, as values; no code of them runs here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.dataset.artifacts import discover_artifacts
from generator.dataset.paths import DatasetFile
from generator.dataset.schema import read_checked
from generator.problems.failure import Failure
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
    """Return the solutions of definitions, sorted: those named, or all by some authors.

    A name is that of a file, or of a solution of the dataset. Raises Failure for one
    that is not there, or does not fit the schema.
    """
    by_key = {(file.op_type, file.name): file for file in definitions}
    paths = [path for path in named if path.endswith(".json")]
    names = [name for name in named if not name.endswith(".json")]
    found = [_read(Path(path).parent, Path(path).name, path) for path in paths]
    if names or not named:
        lying = discover_artifacts(dataset, lambda key: True).solutions
        of_names = dict(_of_dataset(lying))
        for name in names:
            if name not in of_names:
                known = did_you_mean(name, of_names)
                raise Failure(f"No solution is named {quote(name)}.{known}")
        chosen = {
            path
            for key, of_key in lying.items()
            for path in of_key
            if (_name(path) in names if names else key in by_key)
            and (not authors or path.split("/")[1] in authors)
        }
        found += [_read(dataset, path, path) for path in sorted(chosen)]
    if not found:
        raise Failure(
            "no solution is chosen: there is none of that author or definition."
        )
    return found


def _of_dataset(
    lying: Mapping[tuple[str, str], Sequence[str]],
) -> Iterator[tuple[str, str]]:
    for paths in lying.values():
        yield from ((_name(path), path) for path in paths)


def _name(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".json")


def _read(root: Path, path: str, shown: str) -> Solution:
    read = read_checked(root, path, "solution")
    if not read.ok:
        raise Failure(f"{shown}: {read.problems[0].message} {read.problems[0].fix}")
    return Solution(read.value, shown)
