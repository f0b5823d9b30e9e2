"""Copy what a definition's workloads are made of, for a process that is confined."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from generator.dataset.atomic_write import write_below
from generator.dataset.file_reading import read_bytes, walk_files

_MOST_BYTES = 1 << 30


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
