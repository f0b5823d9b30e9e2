"""Write definitions of a dataset in another dialect."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from generator.dataset.atomic_write import write_atomically
from generator.dataset.json_file import read_json_lines
from generator.dialects import flashinfer_bench, sol_execbench
from generator.dialects.imported import Refused
from generator.rules.load import load_definitions


def export_dataset(
    dataset: Path,
    dialect: str,
    output: Path,
    op_types: Sequence[str],
    names: Sequence[str],
) -> Iterator[dict[str, Any]]:
    """Yield definition, reason of a refusal or None, and losses, of each that is chosen.

    The blobs that workloads point to are copied. Raises UnknownName, and OSError where
    writing fails.
    """
    loaded = load_definitions(dataset, op_types=op_types, names=names)
    for unfit in loaded.unfit:
        reason = "it has errors: trace-dataset validate"
        yield {"definition": unfit.name, "reason": reason, "lost": []}
    for definition in loaded.definitions:
        path = f"workloads/{definition.op_type}/{definition.name}.jsonl"
        workloads: list[Any] = []
        if (dataset / path).is_file():
            workloads = [line for _, line in read_json_lines(dataset, path).lines]
        writer = sol_execbench if dialect == "sol-execbench" else flashinfer_bench
        try:
            files, lost = writer.export(definition, workloads)
        except Refused as error:
            yield {"definition": definition.name, "reason": str(error), "lost": []}
            continue
        folder = output
        if dialect == "sol-execbench":
            folder = output / definition.op_type / definition.name
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / name, text.encode("utf-8"))
        lost += _copy_blobs(dataset, workloads, folder)
        yield {"definition": definition.name, "reason": None, "lost": lost}


def _copy_blobs(dataset: Path, workloads: list[Any], folder: Path) -> Iterator[str]:
    """Copy the blobs of workloads; yield a sentence for each that can't be."""
    inputs = [v for line in workloads for v in line["workload"]["inputs"].values()]
    paths = {v["path"] for v in inputs if v.get("type") == "safetensors"}
    for path in sorted(paths):
        source = (dataset / path).resolve()
        if dataset.resolve() not in source.parents or not source.is_file():
            yield f"the blob {path} is not there"
            continue
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / path)
