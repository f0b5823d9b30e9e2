"""Blobs: a workload's path to a tensor file stays in the dataset and leads to data."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from generator.lfs import is_lfs_pointer
from generator.pointer import pointer
from generator.problems import Problem
from generator.rules.table import finding
from generator.wording import one_line, quote

_SMALLEST_BLOB = 1024
"""Git LFS pointers are smaller; only such files are opened."""

BlobVerdict = tuple[str, str] | None
"""A rule and what to say under it, or None for a blob that is there."""


def check_blobs(
    line: Mapping[str, Any],
    root: Path,
    seen: dict[str, BlobVerdict],
    file: str,
    number: int,
) -> Iterator[Problem]:
    """Yield a Problem for each path that is unsafe or leads to no data.

    `seen` carries verdicts from line to line: several inputs share one blob.
    """
    for name, source in line["workload"]["inputs"].items():
        if source["type"] != "safetensors":
            continue
        path = source["path"]
        if path not in seen:
            seen[path] = _judge(root, path)
        verdict = seen[path]
        if verdict is not None:
            rule, what = verdict
            where = pointer(("workload", "inputs", name, "path"))
            message = f"The blob {quote(path, 200)} {what}."
            yield finding(rule, file, message, pointer=where, line=number)


def _judge(root: Path, path: str) -> BlobVerdict:
    if path.startswith("/") or "\\" in path or ":" in path.split("/")[0]:
        return "workload-path", "is not a relative path with forward slashes"
    if ".." in path.split("/"):
        return "workload-path", "leads upwards"
    if not path.isprintable():
        return "workload-path", "has characters that can't be printed"
    if not path.endswith(".safetensors"):
        return "workload-path", "does not end in .safetensors"
    blob = root / path
    try:
        if not os.path.isfile(blob):
            return "workload-blob-missing", "is not there"
        real_root = os.path.realpath(root)
        if os.path.commonpath((real_root, os.path.realpath(blob))) != real_root:
            return "workload-path", "is a symbolic link out of the dataset"
        if os.path.getsize(blob) < _SMALLEST_BLOB and is_lfs_pointer(blob):
            return "workload-blob-lfs", "is a Git LFS pointer, not the data"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return "workload-blob-missing", f"can't be read: {one_line(reason)}"
    return None
