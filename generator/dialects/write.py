"""Write what was imported as a dataset; no file of another content is overwritten."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from generator.dataset.atomic_write import write_atomically
from generator.dataset.paths import CUSTOM_INPUTS
from generator.dialects.imported import Import


def write(imports: Iterable[Import], output: Path) -> Iterator[Import]:
    """Write each definition below `output`; yield it, or why it was refused after all.

    Two of one name and another content: the first is kept, and so is a file that lies
    there before. Raises OSError where writing fails.
    """
    for found in imports:
        yield _written(found, output)


def _written(found: Import, output: Path) -> Import:
    if found.value is None:
        return found
    name, op_type = found.value["name"], found.value["op_type"]
    path = output / "definitions" / op_type / f"{name}.json"
    text = json.dumps(found.value, indent=2, ensure_ascii=False) + "\n"
    if path.exists() and path.read_text("utf-8") != text:
        return replace(
            found,
            value=None,
            reason=f"{path} has another content: it is not overwritten",
        )
    files = {path: text}
    if found.custom:
        files[output / CUSTOM_INPUTS / op_type / f"{name}.py"] = found.custom
    for kind, lines in (("workloads", found.workloads), ("traces", found.traces)):
        if lines:
            content = "".join(f"{json.dumps(line)}\n" for line in lines)
            files[output / kind / op_type / f"{name}.jsonl"] = content
    for solution in found.solutions:
        folder = output / "solutions" / solution["author"] / op_type / name
        content = json.dumps(solution, indent=2, ensure_ascii=False) + "\n"
        files[folder / f"{solution['name']}.json"] = content
    for file, content in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, content.encode("utf-8"))
    return found
