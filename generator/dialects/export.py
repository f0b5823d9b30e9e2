"""Write definitions of a dataset in another dialect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from generator.dataset.atomic_write import write_below
from generator.dataset.file_reading import is_file
from generator.dataset.json_file import read_json_lines
from generator.dataset.plugins import DIALECTS, plugin
from generator.dialects import flashinfer_bench, sol_execbench
from generator.dialects.blobs import copy_blobs
from generator.dialects.imported import ImportRefused
from generator.problems import Failure
from generator.rules.load import load_definitions

_OWN = {"sol-execbench": sol_execbench, "flashinfer-bench": flashinfer_bench}


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
    writer: Any = _OWN.get(dialect) or plugin(DIALECTS, dialect)
    if not hasattr(writer, "export"):
        raise Failure(f"{writer.__name__} can't write: it has no export().")
    loaded = load_definitions(dataset, op_types=op_types, names=names)
    for unfit in loaded.unfit:
        reason = "it has errors: trace-dataset validate"
        yield {"definition": unfit.name, "reason": reason, "lost": []}
    for definition in loaded.definitions:
        path = f"workloads/{definition.op_type}/{definition.name}.jsonl"
        workloads: list[Any] = []
        if is_file(dataset, path):
            workloads = [line for _, line in read_json_lines(dataset, path).lines]
        try:
            files, lost = writer.export(definition, workloads)
        except ImportRefused as error:
            yield {"definition": definition.name, "reason": str(error), "lost": []}
            continue
        below = ""
        if dialect == "sol-execbench":
            below = f"{definition.op_type}/{definition.name}/"
        for name, text in files.items():
            write_below(output, f"{below}{name}", text.encode("utf-8"))
        lost += copy_blobs(dataset, workloads, output, below=below, overwrites=True)
        yield {"definition": definition.name, "reason": None, "lost": lost}
