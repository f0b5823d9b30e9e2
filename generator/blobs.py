"""The blobs of one definition's workloads: each is judged and opened once."""

from __future__ import annotations

import os
import stat
from collections import OrderedDict
from pathlib import Path

from generator.reading import opened, read_at_most
from generator.tensorfile import (
    MAX_WHOLE,
    BadTensorFile,
    LfsPointer,
    TensorFile,
    digest_of,
    digest_of_large,
    open_tensor_file,
)
from generator.wording import one_line

Verdict = tuple[str, str]
"""A rule that a blob breaks, and what to say under it."""

_KEPT = 4
"""Open blobs that are kept: a workload's inputs share one or two."""


class Blobs:
    """Open the blobs under one root and remember what became of each.

    `states` maps every path that was asked for to its content's digest, or to what
    stands in its way: the same states give the same problems.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.states: dict[str, str] = {}
        self._verdicts: dict[str, Verdict] = {}
        self._open: OrderedDict[str, TensorFile] = OrderedDict()
        self._folders: dict[str, bool] = {}

    def open(self, path: str) -> TensorFile | Verdict:
        """Return the blob at a path as a workload gives it, or why it can't be used."""
        if path in self._verdicts:
            return self._verdicts[path]
        if path in self._open:
            self._open.move_to_end(path)
            return self._open[path]
        found = bad_path(path) or self._located(path)
        if isinstance(found, tuple):
            self._verdicts[path] = found
            self.states.setdefault(path, found[0])
            return found
        self.states[path] = found.digest
        self._open[path] = found
        if len(self._open) > _KEPT:
            self._open.popitem(last=False)
        return found

    def _located(self, path: str) -> TensorFile | Verdict:
        try:
            outside = leads_outside(self.root, path, self._folders)
            if outside is None:
                return "workload-blob-missing", "is not there"
            if outside:
                return "workload-path", "is a symbolic link out of the dataset"
            return open_tensor_file(f"{self.root}/{path}")
        except LfsPointer:
            self.states[path] = state_of(self.root, path)
            return "workload-blob-lfs", "is a Git LFS pointer, not the data"
        except BadTensorFile as error:
            self.states[path] = state_of(self.root, path)
            return "blob-format", one_line(str(error))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            return "workload-blob-missing", f"can't be read: {one_line(reason)}"


def bad_path(path: str) -> Verdict | None:
    """Return what is wrong with a path as text, whatever lies there."""
    if path.startswith("/") or "\\" in path or ":" in path.split("/")[0]:
        return "workload-path", "is not a relative path with forward slashes"
    if ".." in path.split("/"):
        return "workload-path", "leads upwards"
    if not path.isprintable():
        return "workload-path", "has characters that can't be printed"
    if not path.endswith(".safetensors"):
        return "workload-path", "does not end in .safetensors"
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


def state_of(root: Path, path: str, folders: dict[str, bool] | None = None) -> str:
    """Return what `Blobs.states` says of a path, without judging the content."""
    verdict = bad_path(path)
    if verdict is not None:
        return verdict[0]
    try:
        outside = leads_outside(root, path, {} if folders is None else folders)
        if outside is not False:
            return "workload-blob-missing" if outside is None else "workload-path"
        with opened(f"{root}/{path}") as file:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                return "workload-blob-missing"
            if status.st_size > MAX_WHOLE:
                return digest_of_large(status)
            return digest_of(read_at_most(file, MAX_WHOLE + 1))
    except (OSError, ValueError):
        return "workload-blob-missing"
