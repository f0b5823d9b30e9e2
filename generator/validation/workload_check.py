"""Check one workload file, line by line, against its definition and its blobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.dataset.blobs import Blobs
from generator.dataset.definition import LoadedDefinition
from generator.dataset.paths import DatasetFile
from generator.dataset.schema import read_checked_lines
from generator.ops.registry import op_specs
from generator.problems import Problem, in_file, limited
from generator.rules.blobs import check_blobs
from generator.rules.constraints import check_unchecked, check_workload
from generator.rules.structure import check_structure, lengths
from generator.rules.synthetic_workloads import FileSigns
from generator.rules.workloads import WORKLOAD_MISSING, check_form, check_identity


@dataclass(frozen=True)
class WorkloadFile:
    """The contents of a workload file: its Problems, and the axes of each uuid.

    `count` is the number of lines.
    """

    problems: Sequence[Problem]
    axes: Mapping[str, Mapping[str, int]]
    count: int = 0


def check_workload_file(
    root: Path,
    path: str | None,
    file: DatasetFile,
    definition: LoadedDefinition | None,
    blobs: Blobs,
) -> WorkloadFile:
    """Check the workloads of a definition's `file`; `path` is None where it has none.

    Without a definition that fits the schema only the lines' own form is checked.
    """
    if path is not None:
        read = read_checked_lines(root, path, "workload")
        if read.count or read.problems:
            axes: dict[str, Mapping[str, int]] = {}
            broken = _check_lines(read.lines, file.name, definition, blobs, axes)
            problems = (*read.problems, *limited(broken, path))
            return WorkloadFile(problems, axes, read.count)
    message = f"The definition has no workloads/{file.op_type}/{file.name}.jsonl, or "
    missing = WORKLOAD_MISSING.problem(file.path, f"{message}an empty one.")
    return WorkloadFile((missing,), {})


def _check_lines(
    lines: Sequence[tuple[int, Any]],
    name: str,
    definition: LoadedDefinition | None,
    blobs: Blobs,
    axes: dict[str, Mapping[str, int]],
) -> Iterator[Problem]:
    """Yield the Problems of lines that fit the schema; put their axes into `axes`."""
    uuids: dict[str, int] = {}
    unchecked: dict[int, str] = {}
    signs = FileSigns()
    spec = op_specs().get(definition.op_type) if definition is not None else None
    causal = spec is not None and spec.stated(name).get("is_causal", False)

    def of_line(number: int, line: Mapping[str, Any]) -> Iterator[Problem]:
        workload = line["workload"]
        yield from check_identity(line, name, uuids, number)
        axes.setdefault(workload["uuid"], workload["axes"])
        sizes: Mapping[str, int] = {}
        is_right = False
        if definition is not None:
            form = list(check_form(workload, definition))
            yield from form
            is_right = not form
            sizes = {**workload["axes"], **definition.const_axes} if is_right else {}
        values: dict[str, Any] = {}
        yield from check_blobs(workload["inputs"], definition, sizes, blobs, values)
        if definition is None:
            return
        if is_right:
            yield from check_structure(definition, sizes, values)
            yield from check_workload(definition, sizes, values, unchecked)
            rows = lengths(sizes, values)
            if rows is not None:
                signs.add_lengths(*rows, causal, number)
        yield from signs.add(workload, blobs.states, number)

    for number, line in lines:
        yield from in_file(of_line(number, line), "", number)
    yield from signs.check()
    if definition is not None:
        yield from check_unchecked(definition, unchecked)
