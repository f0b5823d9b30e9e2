"""The blobs of one definition's workloads: each is opened and checked once."""

from __future__ import annotations

import errno
from functools import lru_cache, partial
from pathlib import Path

from generator.dataset.file_reading import LFS_MAGIC, LastFolder
from generator.dataset.tensors import BadTensorFile, TensorFile, open_tensor_file
from generator.problems import Rule, error, warning
from generator.problems.messages import one_line

WORKLOAD_PATH = error("""workload-path: A path to a blob leads out of the dataset, through
    a symbolic link, or is not portable.
    Fix: Write the path relative to the dataset's root, with forward slashes.
    Finds: `"path": "../../etc/x.safetensors"`""")
WORKLOAD_BLOB_MISSING = warning("""workload-blob-missing: A workload points to a file
    that is not there.
    Fix: Add the blob, or fetch it with `git lfs pull`.
    Finds: a path to a blob that was not committed""")
WORKLOAD_BLOB_LFS = warning("""workload-blob-lfs: A workload points to a blob of which
    only the Git LFS pointer is there.
    Fix: Fetch the blob with `git lfs pull`.
    Finds: a clone made without Git LFS""")
BLOB_FORMAT = error("""blob-format: A blob is not a safetensors file, or its header
    contradicts its length.
    Fix: Write the blob again, with safetensors' own library.
    Finds: a file cut short while it was copied""")

Defect = tuple[Rule, str]
"""A rule that a blob breaks, and the end of the message: `is not there`."""

_KEPT = 4
"""Blobs whose state is kept: a workload's inputs share one or two."""


class Blobs:
    """The blobs under one root, opened, with the state of each; `close` at the end.

    `states` maps every path that was asked for to the digest of its content, or to the
    id of the rule that it breaks where that can't be read.
    """

    def __init__(self, root: Path) -> None:
        self.states: dict[str, str] = {}
        folder = LastFolder(root)
        self.close = folder.close
        # a partial function, not a method: that would keep what it belongs to alive
        self.open = lru_cache(_KEPT)(partial(_opened, folder, self.states))


def _opened(
    folder: LastFolder, states: dict[str, str], path: str
) -> TensorFile | Defect:
    """Return the blob at a path as a workload gives it, or its defect."""
    opened = path_defect(path) or _located(folder, states, path)
    if isinstance(opened, tuple):
        states.setdefault(path, opened[0].id)
    return opened


def _located(
    folder: LastFolder, states: dict[str, str], path: str
) -> TensorFile | Defect:
    try:
        blob = open_tensor_file(folder, path)
    except FileNotFoundError:
        return WORKLOAD_BLOB_MISSING, "is not there"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        is_link = getattr(error, "errno", None) == errno.ELOOP
        rule = WORKLOAD_PATH if is_link else WORKLOAD_BLOB_MISSING
        return rule, f"can't be read: {one_line(reason)}"
    states[path] = blob.digest
    if blob.head.startswith(LFS_MAGIC):
        return WORKLOAD_BLOB_LFS, "is a Git LFS pointer, not the data"
    try:
        blob.read_header()
    except BadTensorFile as error:
        return BLOB_FORMAT, one_line(str(error))
    return blob


def path_defect(path: str) -> Defect | None:
    """Return the defect of a path as text, whether or not a file lies there."""
    what = None
    if path.startswith("/") or "\\" in path or ":" in path.split("/")[0]:
        what = "is not a relative path with forward slashes"
    elif ".." in path.split("/"):
        what = "leads upwards"
    elif not path.isprintable():
        what = "has characters that can't be printed"
    elif not path.endswith(".safetensors"):
        what = "does not end in .safetensors"
    return None if what is None else (WORKLOAD_PATH, what)
