"""Check one workload file, line by line, against its definition and its blobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generator.dataset.blobs import Blobs
from generator.dataset.definition import Definition
from generator.dataset.json_file import JsonLines, read_json_lines
from generator.dataset.schema import at_new_places, check
from generator.ops.registry import op_specs
from generator.problems import Problem
from generator.problems.limit import limited
from generator.rules.blobs import check_blobs
from generator.rules.constraints import check_constraints, check_unchecked
from generator.rules.made_up import FileSigns
from generator.rules.structure import check_structure, lengths
from generator.rules.workloads import check_axes, check_inputs, check_name, check_uuid


@dataclass
class WorkloadFile:
    """Hold what a workload file has: its Problems, and the axes of each uuid.

    `count` is the number of lines; `found` says whether there is anything in it.
    """

    problems: list[Problem] = field(default_factory=list)
    axes: dict[str, Mapping[str, int]] = field(default_factory=dict)
    count: int = 0
    found: bool = False


def check_workload_file(
    root: Path, path: str, definition: Definition | None, blobs: Blobs
) -> WorkloadFile:
    """Check the file at `path` against the definition that its path names.

    Without a definition that fits the schema only the lines' own form is checked.
    """
    lines = read_json_lines(root, path)
    checked = WorkloadFile(count=lines.count)
    checked.found = bool(lines.count or lines.problems)
    checked.problems += lines.problems
    of_lines = _check_lines(path, lines, definition, blobs, checked)
    checked.problems += limited(of_lines, path)
    return checked


def _check_lines(
    path: str,
    lines: JsonLines,
    definition: Definition | None,
    blobs: Blobs,
    checked: WorkloadFile,
) -> Iterator[Problem]:
    name = path.rsplit("/", 1)[-1].removesuffix(".jsonl")
    uuids: dict[str, int] = {}
    unchecked: dict[int, str] = {}
    signs = FileSigns()
    spec = op_specs().get(definition.op_type) if definition is not None else None
    causal = spec is not None and spec.stated(name).get("is_causal", False)
    for number, line in lines.lines:
        broken = check(line, "workload", path, number)
        if broken:
            yield from at_new_places(broken, lines.problems)
            continue
        yield from check_name(line, name, path, number)
        yield from check_uuid(line, uuids, path, number)
        workload = line["workload"]
        checked.axes.setdefault(workload["uuid"], workload["axes"])
        if definition is None:
            yield from check_blobs(line, None, None, blobs, {}, path, number)
            continue
        form = [
            *check_axes(line, definition, path, number),
            *check_inputs(line, definition, path, number),
        ]
        yield from form
        axes = {**workload["axes"], **definition.const_axes}
        values: dict[str, Any] = {}
        yield from check_blobs(
            line, definition, None if form else axes, blobs, values, path, number
        )
        if not form:
            yield from check_structure(definition, axes, values, path, number)
            yield from check_constraints(
                definition, axes, values, unchecked, path, number
            )
            rows = lengths(axes, values)
            if rows is not None:
                signs.add_lengths(*rows, causal, number)
        yield from signs.add(line, blobs.states, path, number)
    yield from signs.check(path)
    if definition is not None:
        yield from check_unchecked(definition, unchecked)
