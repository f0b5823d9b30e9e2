"""Choose the files of a listing that belong to the definitions that were asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path

from generator.dataset.changes import owner_of
from generator.dataset.paths import VERIFICATION, DatasetFile, Discovered, select
from generator.hub.remote import Listing, RemoteFile
from generator.review.sources import blobs_named

UNRECORDED = "blob/ground_truth/unrecorded.json"


class BlobChoice(str, Enum):
    """Which tensors are fetched: none, those that workloads name, or all."""

    NONE = "none"
    NEEDED = "needed"
    ALL = "all"


def choose(
    listing: Listing, op_types: Sequence[str], names: Sequence[str]
) -> tuple[list[RemoteFile], list[RemoteFile]]:
    """Return the texts and the blobs of some definitions; all where none are named.

    What belongs to no definition, the evidence of verification/ for one, is always
    there; rendered tests only with everything, since they are about all of an op_type.
    Raises UnknownName.
    """
    owners = {path: owner_of(path) for path in listing.files}
    found = sorted(
        DatasetFile(*owner[0], path)
        for path, owner in owners.items()
        if owner is not None and owner[1] == "definition"
    )
    known = Discovered(tuple(found), tuple({file.op_type for file in found}), ())
    keys = {(f.op_type, f.name) for f in select(known, op_types, names)}
    texts: list[RemoteFile] = []
    blobs: list[RemoteFile] = []
    for path, file in listing.files.items():
        owner = owners[path]
        is_shared = path.startswith(f"{VERIFICATION}/") or path == UNRECORDED
        is_chosen = owner[0] in keys if owner is not None else is_shared
        if is_chosen or not (op_types or names):
            (blobs if is_blob(path) else texts).append(file)
    return texts, blobs


def is_blob(path: str) -> bool:
    """Return whether a file is a tensor file, fetched on demand only."""
    return path.startswith("blob/") and not path.endswith(".json")


def needed(
    root: Path, blobs: Iterable[RemoteFile], texts: Iterable[RemoteFile]
) -> tuple[list[RemoteFile], list[str]]:
    """Return the recordings and the blobs that the workloads under `root` name.

    The second list has the paths that workloads name and the repository does not have.
    """
    lines = [file.path for file in texts if file.path.startswith("workloads/")]
    named = {blob for path in lines for blob in blobs_named(root, path)}
    wanted = [
        file
        for file in blobs
        if file.path in named or file.path.startswith("blob/ground_truth/")
    ]
    return wanted, sorted(named - {file.path for file in wanted})
