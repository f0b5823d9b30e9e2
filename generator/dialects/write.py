"""Write what was imported as a dataset; no file of another content is overwritten."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from generator.dataset.atomic_write import write_below
from generator.dataset.file_reading import is_absent, read_bytes
from generator.dataset.paths import CUSTOM_INPUTS, is_portable
from generator.dialects.blobs import copy_blobs
from generator.dialects.imported import Import
from generator.problems.messages import quote

_LONGEST = 200


def write(imports: Iterable[Import], output: Path) -> Iterator[Import]:
    """Write each definition below `output`; yield it, or why it was refused after all.

    Blobs that its workloads name are copied. Of two files of one name and another content
    the first is kept, and so is one that lies there before: a definition is refused then,
    and the last of its changes say what else was not written. Raises OSError where writing
    fails.
    """
    for imported in imports:
        yield _written(imported, output)


def _written(imported: Import, output: Path) -> Import:
    if imported.value is None:
        return imported
    name, op_type = imported.value["name"], imported.value["op_type"]
    path = f"definitions/{op_type}/{name}.json"
    texts = {path: _pretty(imported.value)}
    if imported.custom:
        texts[f"{CUSTOM_INPUTS}/{op_type}/{name}.py"] = imported.custom
    for kind, lines in (("workloads", imported.workloads), ("traces", imported.traces)):
        if lines:
            content = "".join(f"{json.dumps(line)}\n" for line in lines)
            texts[f"{kind}/{op_type}/{name}.jsonl"] = content
    lacking = []
    for solution in imported.solutions:
        author, title = solution["author"], solution["name"]
        if all(map(_is_part, (author, title))):
            folder = f"solutions/{author}/{op_type}/{name}"
            texts[f"{folder}/{title}.json"] = _pretty(solution)
        else:
            shown = f"{quote(title, 60)} of {quote(author, 60)}"
            lacking.append(f"the solution {shown} has no name that a file can have")
    # half of a surrogate pair is JSON's word for a character that no file holds
    files = {f: t.encode("utf-8", "backslashreplace") for f, t in texts.items()}
    others = [f for f, data in files.items() if _is_other(output, f, data)]
    if path in others:
        reason = f"{output / path} has another content: it is not overwritten"
        return replace(imported, value=None, reason=reason)
    for file, data in files.items():
        if file in others:
            lacking.append(f"{quote(file, 200)} has another content: not overwritten")
        else:
            write_below(output, file, data)
    if imported.folder is not None:
        lacking += copy_blobs(imported.folder, imported.workloads, output)
    return replace(imported, changes=[*imported.changes, *lacking])


def _pretty(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _is_part(name: str) -> bool:
    """Return whether a name that a stranger chose can be one part of a path."""
    is_hidden = name.startswith(".") or "/" in name
    return 0 < len(name) <= _LONGEST and not is_hidden and is_portable(name)


def _is_other(output: Path, file: str, data: bytes) -> bool:
    """Return whether something else lies in the place of a file."""
    return not is_absent(output, file) and read_bytes(output, file) != data
