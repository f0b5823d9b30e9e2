"""Choose the files of a listing that belong to the definitions that were asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from generator.dataset.artifacts import Key
from generator.dataset.changes import owner_of
from generator.dataset.json_file import read_json_lines
from generator.dataset.paths import VERIFICATION, DatasetFile, Discovered, select
from generator.hub.client import RemoteFile
from generator.hub.listing import Listing


class BlobChoice(str, Enum):
    """Which tensors are fetched: none, those that workloads name, or all."""

    NONE = "none"
    NEEDED = "needed"
    ALL = "all"


@dataclass(frozen=True)
class ChosenFiles:
    """Hold the files that are text, and the blobs that belong to them."""

    texts: tuple[RemoteFile, ...]
    blobs: tuple[RemoteFile, ...]


def choose(
    listing: Listing, op_types: Sequence[str], names: Sequence[str]
) -> ChosenFiles:
    """Return the files of some definitions; everything where none are named.

    What belongs to no definition, the evidence of verification/ for one, is always
    there; rendered tests only with everything, since they are about all of an op_type.
    Raises UnknownName.
    """
    everything = not op_types and not names
    keys = {(f.op_type, f.name) for f in select(_found(listing), op_types, names)}
    texts: list[RemoteFile] = []
    blobs: list[RemoteFile] = []
    for path, file in listing.files.items():
        if not everything and not _belongs(path, keys):
            continue
        (blobs if is_blob(path) else texts).append(file)
    return ChosenFiles(tuple(texts), tuple(blobs))


def is_blob(path: str) -> bool:
    """Return whether a file is a tensor file, fetched on demand only."""
    return path.startswith("blob/") and not path.endswith(".json")


def needed(
    root: Path, blobs: Iterable[RemoteFile], texts: Iterable[RemoteFile]
) -> tuple[list[RemoteFile], list[str]]:
    """Return the recordings and the blobs that the workloads under `root` name.

    The second list has the paths that workloads name and the repository does not have.
    """
    named: set[str] = set()
    for file in texts:
        if file.path.startswith("workloads/"):
            named |= blobs_named(root, file.path)
    there = {file.path: file for file in blobs}
    wanted = [
        file
        for path, file in there.items()
        if path in named or path.startswith("blob/ground_truth/")
    ]
    return wanted, sorted(named - there.keys())


def blobs_named(root: Path, path: str) -> set[str]:
    """Return the paths that a workload file names; what can't be read names none."""
    found = set()
    for _, line in read_json_lines(root, path).lines:
        try:
            inputs = line["workload"]["inputs"].values()
            found |= {
                str(value["path"]).removeprefix("./")
                for value in inputs
                if value.get("type") == "safetensors"
            }
        except (KeyError, TypeError, AttributeError):
            continue
    return found


def _belongs(path: str, keys: set[Key]) -> bool:
    owner = owner_of(path)
    if owner is not None:
        return owner[0] in keys
    shared = path.startswith(f"{VERIFICATION}/")
    return shared or path == "blob/ground_truth/unrecorded.json"


def _found(listing: Listing) -> Discovered:
    """Return the definitions of a listing as discovery finds them in a folder."""
    files = []
    for path in listing.files:
        owner = owner_of(path)
        if owner is not None and owner[1] == "definition":
            files.append(DatasetFile(*owner[0], path))
    op_types = tuple(sorted({file.op_type for file in files}))
    return Discovered(tuple(sorted(files)), op_types, ())
