"""Read a definition's workloads, and copy what they are made of for a confined process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from generator.dataset.atomic_write import write_below
from generator.dataset.file_reading import is_file, read_bytes, walk_files
from generator.dataset.json_file import read_json_lines

_MOST_BYTES = 1 << 30


def workloads_of(root: Path, op_type: str, name: str) -> list[Mapping[str, Any]]:
    """Return the workloads that the dataset has of a definition, which are valid."""
    path = f"workloads/{op_type}/{name}.jsonl"
    if not is_file(root, path):
        return []
    return [line["workload"] for _, line in read_json_lines(root, path).lines]


def copy_workloads(
    keys: Iterable[tuple[str, str]], dataset: Path, folder: Path
) -> None:
    """Put the workloads of definitions, (op_type, name), and their tensors below a folder.

    They lie there as in the dataset. Links and empty files are left out: a file that is
    missing is a workload that fails.
    """
    for key in keys:
        name = "/".join(key)
        blobs = walk_files(dataset, f"blob/workloads/{name}", ".safetensors")
        for path in (f"workloads/{name}.jsonl", *blobs):
            with suppress(OSError):
                content = read_bytes(dataset, path, _MOST_BYTES)
                if content:
                    write_below(folder, path, content)
