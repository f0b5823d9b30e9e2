"""Copy the blobs that workloads name, from a dataset to a dialect's files or back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from generator.dataset.atomic_write import write_below
from generator.dataset.blobs import path_defect
from generator.dataset.file_reading import is_absent, read_bytes
from generator.problems.messages import quote

_MAX_BLOB = 1 << 30
"""Bytes of the largest blob that is copied; a workload's have some KiB."""


def copy_blobs(
    source: Path,
    workloads: Iterable[Mapping[str, Any]],
    output: Path,
    *,
    below: str = "",
    overwrites: bool = False,
) -> Iterator[str]:
    """Copy blobs from a folder to `below` in another; yield why one is not copied.

    Unless one `overwrites`, a file of another content stays. Neither the workloads nor
    the folders are trusted. Raises OSError where writing fails.
    """
    for path in sorted(set(_paths(workloads))):
        shown, target = f"the blob {quote(path, 120)}", f"{below}{path}"
        if defect := path_defect(path):
            yield f"{shown} {defect[1]}"
            continue
        try:
            content = read_bytes(source, path, _MAX_BLOB)
        except FileNotFoundError:
            yield f"{shown} is not there"
            continue
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            yield f"{shown} can't be read: {reason}"
            continue
        if overwrites or is_absent(output, target):
            write_below(output, target, content)
        elif read_bytes(output, target, _MAX_BLOB) != content:
            yield f"{shown} has another content in {output}: it is not overwritten"


def _paths(workloads: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for line in workloads:
        workload = line.get("workload")
        inputs = workload.get("inputs") if isinstance(workload, dict) else None
        for value in inputs.values() if isinstance(inputs, dict) else ():
            if isinstance(value, dict) and value.get("type") == "safetensors":
                path = value.get("path")
                if isinstance(path, str):
                    yield path
