"""Check the workload files of loaded definitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from generator.definition import Definition
from generator.discover import DatasetFile, discover_workloads
from generator.jsonfile import JsonLines, read_json_lines
from generator.load import Loaded
from generator.problems import Problem
from generator.rules.blobs import BlobVerdict, check_blobs
from generator.rules.limit import limited
from generator.rules.table import finding
from generator.rules.workloads import check_axes, check_inputs, check_name, check_uuid
from generator.schema import check
from generator.wording import quote


@dataclass(frozen=True)
class WorkloadCheck:
    """Hold the number of workload lines that were read, and what is wrong."""

    count: int
    problems: tuple[Problem, ...]


def check_workloads(root: Path, loaded: Loaded) -> WorkloadCheck:
    """Check the workloads of the definitions that were selected.

    A file is checked against the definition of its path, also where that can't be
    rendered; without a definition that fits the schema only the lines' own form is.
    """
    found = discover_workloads(root)
    selected = {(file.op_type, file.name) for file in loaded.files}
    everything = {file.name for file in loaded.files} == set(loaded.names)
    definitions = {
        d.path.removeprefix("definitions/").removesuffix(".json"): d
        for d in (*loaded.definitions, *loaded.unfit)
    }
    problems = list(found.problems) if everything else []
    count = 0
    present = set()
    for file in found.files:
        key = (file.op_type, file.name)
        if key not in selected:
            if everything:
                problems.append(_orphan(file))
            continue
        lines = read_json_lines(root, file.path)
        count += lines.count
        if lines.count or lines.problems:
            present.add(key)
        definition = definitions.get(f"{file.op_type}/{file.name}")
        of_lines = _check_lines(root, file, lines, definition)
        problems += lines.problems
        problems += limited(of_lines, file.path)
    problems += _without_workloads(loaded.files, present)
    return WorkloadCheck(count, tuple(sorted(problems, key=lambda p: p.file)))


def _check_lines(
    root: Path, file: DatasetFile, lines: JsonLines, definition: Definition | None
) -> Iterator[Problem]:
    known = {(p.line, p.pointer) for p in lines.problems if p.pointer}
    uuids: dict[str, int] = {}
    blobs: dict[str, BlobVerdict] = {}
    for number, line in lines.lines:
        broken = check(line, "workload", file.path, number)
        if broken:
            yield from (p for p in broken if (p.line, p.pointer) not in known)
            continue
        yield from check_name(line, file.name, file.path, number)
        yield from check_uuid(line, uuids, file.path, number)
        yield from check_blobs(line, root, blobs, file.path, number)
        if definition is not None:
            yield from check_axes(line, definition, file.path, number)
            yield from check_inputs(line, definition, file.path, number)


def _orphan(file: DatasetFile) -> Problem:
    message = f"There is no definition {quote(file.name)} in op_type " + (
        f"{quote(file.op_type)}."
    )
    return finding("workload-orphan", file.path, message)


def _without_workloads(
    files: Iterable[DatasetFile], present: set[tuple[str, str]]
) -> list[Problem]:
    return [
        finding(
            "workload-missing",
            file.path,
            f"The definition has no workloads/{file.op_type}/{file.name}.jsonl, "
            "or an empty one.",
        )
        for file in files
        if (file.op_type, file.name) not in present
    ]
