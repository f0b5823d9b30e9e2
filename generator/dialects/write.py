"""Write what was imported as a dataset; no file of another content is overwritten."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from generator.dataset.atomic_write import write_below
from generator.dataset.file_reading import is_absent, read_text
from generator.dataset.paths import CUSTOM_INPUTS
from generator.dialects.blobs import copy_blobs
from generator.dialects.imported import Import


def write(imports: Iterable[Import], output: Path) -> Iterator[Import]:
    """Write each definition below `output`; yield it, or why it was refused after all.

    Blobs that its workloads name are copied; why one is not is the last of its changes.
    Two of one name and another content: the first is kept, and so is a file that lies
    there before. Raises OSError where writing fails.
    """
    for found in imports:
        yield _written(found, output)


def _written(found: Import, output: Path) -> Import:
    if found.value is None:
        return found
    name, op_type = found.value["name"], found.value["op_type"]
    path = f"definitions/{op_type}/{name}.json"
    text = json.dumps(found.value, indent=2, ensure_ascii=False) + "\n"
    if not is_absent(output, path) and read_text(output, path) != text:
        return replace(
            found,
            value=None,
            reason=f"{output / path} has another content: it is not overwritten",
        )
    files = {path: text}
    if found.custom:
        files[f"{CUSTOM_INPUTS}/{op_type}/{name}.py"] = found.custom
    for kind, lines in (("workloads", found.workloads), ("traces", found.traces)):
        if lines:
            content = "".join(f"{json.dumps(line)}\n" for line in lines)
            files[f"{kind}/{op_type}/{name}.jsonl"] = content
    for solution in found.solutions:
        folder = f"solutions/{solution['author']}/{op_type}/{name}"
        content = json.dumps(solution, indent=2, ensure_ascii=False) + "\n"
        files[f"{folder}/{solution['name']}.json"] = content
    for file, content in files.items():
        write_below(output, file, content.encode("utf-8"))
    if found.folder is None:
        return found
    lacking = copy_blobs(found.folder, found.workloads, output)
    return replace(found, changes=[*found.changes, *lacking])
