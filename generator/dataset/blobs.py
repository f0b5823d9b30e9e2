"""The blobs of one definition's workloads: each is opened and checked once."""

from __future__ import annotations

import os
import stat
from collections import OrderedDict
from pathlib import Path

from generator.dataset.file_reading import LFS_MAGIC
from generator.dataset.tensors import BadTensorFile, TensorFile, open_tensor_file
from generator.problems.messages import one_line
from generator.problems.rule import Rule, error, warning

WORKLOAD_PATH = error(
    "workload-path",
    "A path to a blob leads out of the dataset or is not portable.",
    "Write the path relative to the dataset's root, with forward slashes.",
    '`"path": "../../etc/x.safetensors"`',
)
WORKLOAD_BLOB_MISSING = warning(
    "workload-blob-missing",
    "A workload points to a file that is not there.",
    "Add the blob, or fetch it with `git lfs pull`.",
    "a path to a blob that was not committed",
)
WORKLOAD_BLOB_LFS = warning(
    "workload-blob-lfs",
    "A workload points to a blob of which only the Git LFS pointer is there.",
    "Fetch the blob with `git lfs pull`.",
    "a clone made without Git LFS",
)
BLOB_FORMAT = error(
    "blob-format",
    "A blob is not a safetensors file, or its header contradicts its length.",
    "Write the blob again, with safetensors' own library.",
    "a file cut short while it was copied",
)


Defect = tuple[Rule, str]
"""A rule that a blob breaks, and the end of the message: `is not there`."""

_KEPT = 4
"""Open blobs that are kept: a workload's inputs share one or two."""


class Blobs:
    """Open the blobs under one root and remember the state of each.

    `states` maps every path that was asked for to the digest of its content, or to the
    id of the rule that it breaks where that can't be read.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.states: dict[str, str] = {}
        self._defects: dict[str, Defect] = {}
        self._open: OrderedDict[str, TensorFile] = OrderedDict()
        self._folders: dict[str, bool] = {}

    def open(self, path: str) -> TensorFile | Defect:
        """Return the blob at a path as a workload gives it, or its defect."""
        if path in self._defects:
            return self._defects[path]
        if path in self._open:
            self._open.move_to_end(path)
            return self._open[path]
        found = bad_path(path) or self._located(path)
        if isinstance(found, tuple):
            self._defects[path] = found
            self.states.setdefault(path, found[0].id)
            return found
        self._open[path] = found
        if len(self._open) > _KEPT:
            self._open.popitem(last=False)
        return found

    def _located(self, path: str) -> TensorFile | Defect:
        try:
            outside = leads_outside(self.root, path, self._folders)
            if outside is None:
                return WORKLOAD_BLOB_MISSING, "is not there"
            if outside:
                return WORKLOAD_PATH, "is a symbolic link out of the dataset"
            found = open_tensor_file(f"{self.root}/{path}")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            return WORKLOAD_BLOB_MISSING, f"can't be read: {one_line(reason)}"
        self.states[path] = found.digest
        if found.head.startswith(LFS_MAGIC):
            return WORKLOAD_BLOB_LFS, "is a Git LFS pointer, not the data"
        try:
            found.read_header()
        except BadTensorFile as error:
            return BLOB_FORMAT, one_line(str(error))
        return found


def bad_path(path: str) -> Defect | None:
    """Return the defect of a path as text, whether or not a file lies there."""
    if path.startswith("/") or "\\" in path or ":" in path.split("/")[0]:
        return WORKLOAD_PATH, "is not a relative path with forward slashes"
    if ".." in path.split("/"):
        return WORKLOAD_PATH, "leads upwards"
    if not path.isprintable():
        return WORKLOAD_PATH, "has characters that can't be printed"
    if not path.endswith(".safetensors"):
        return WORKLOAD_PATH, "does not end in .safetensors"
    return None


def leads_outside(root: Path, path: str, folders: dict[str, bool]) -> bool | None:
    """Return whether links lead a path out of the dataset; None if nothing is there.

    `folders` remembers the answer for each folder. Raises OSError.
    """
    folder, name = os.path.split(os.path.join(root, path))
    if folder not in folders:
        folders[folder] = _is_outside(root, folder)
    if folders[folder]:
        return True
    target = os.path.join(folder, name)
    try:
        mode = os.lstat(target).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISREG(mode):
        return False
    if not os.path.isfile(target):
        return None
    return _is_outside(root, target)


def _is_outside(root: Path, path: str) -> bool:
    real = os.path.realpath(root)
    return os.path.commonpath((real, os.path.realpath(path))) != real
