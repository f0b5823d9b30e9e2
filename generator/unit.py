"""Check one definition with all that belongs to it: the unit of validating a dataset."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from generator.attached import BLOBS
from generator.blobs import Blobs
from generator.constants import resolve_constants
from generator.definition import Definition
from generator.discover import entries
from generator.jsonfile import read_json, read_json_lines
from generator.load import load_file
from generator.ops import OPS
from generator.outcome import Outcome, Unit
from generator.problems import Problem
from generator.rules import figures, static, tags
from generator.rules.limit import limited
from generator.rules.solutions import check_solution
from generator.rules.table import finding
from generator.rules.traces import Known, check_coverage, check_trace
from generator.schema import Kind, check
from generator.summary import summarise
from generator.workloads import WorkloadFile, check_workload_file


def check_unit(
    root: Path, unit: Unit, config: Mapping[str, Any] | None = None
) -> Outcome:
    """Return everything that is wrong with a unit; nothing of it is executed.

    `config` is a model's config.json that const axes are held against.
    """
    file = unit.file
    definition, problems = load_file(root, file)
    if definition is not None:
        problems += limited(_of_definition(definition, config), file.path)
    blobs = Blobs(root)
    workloads = WorkloadFile()
    if unit.workloads is not None:
        workloads = check_workload_file(root, unit.workloads, definition, blobs)
        problems += workloads.problems
    if not workloads.found:
        message = "The definition has no workloads/"
        message += f"{file.op_type}/{file.name}.jsonl, or an empty one."
        problems.append(finding("workload-missing", file.path, message))
    authors: dict[str, str] = {}
    problems += _solutions(root, unit.solutions, definition, authors)
    known = Known(workloads.axes, authors)
    for path in unit.traces:
        problems += limited(_traces(root, path, file.name, known), path)
    if unit.traces:
        problems += check_coverage(known, unit.traces[0])
    own = f"{BLOBS}/{file.op_type}/{file.name}/"
    used = {posixpath.normpath(path) for path in blobs.states}
    unused = tuple(_unused(root, own, used, problems))
    return Outcome(
        name=definition.name if definition is not None else None,
        problems=tuple(problems),
        workloads=workloads.count,
        summary=summarise(definition) if definition is not None else None,
        blobs=blobs.states,
        elsewhere=tuple(sorted(path for path in used if not path.startswith(own))),
        unused=unused,
    )


def _of_definition(
    definition: Definition, config: Mapping[str, Any] | None
) -> Iterator[Problem]:
    spec = OPS.get(definition.op_type)
    if spec is not None:
        yield from resolve_constants(definition, spec)[1]
    yield from tags.check(definition)
    yield from static.check(definition)
    yield from figures.check(definition)
    if config is not None:
        yield from figures.against(definition, config, "model-config", "config.json")


def _solutions(
    root: Path,
    paths: Iterable[str],
    definition: Definition | None,
    authors: dict[str, str],
) -> Iterator[Problem]:
    names: dict[str, str] = {}
    for path in paths:
        read = read_json(root, path)
        yield from read.problems
        if not read.ok:
            continue
        broken = _new(check(read.value, "solution", path), read.problems)
        yield from broken
        if not broken and not read.problems:
            authors.setdefault(read.value["name"], read.value["author"])
            found = check_solution(read.value, path, definition, names)
            yield from limited(found, path)


def _traces(root: Path, path: str, definition: str, known: Known) -> Iterator[Problem]:
    parts = path.split("/")
    author = parts[1] if len(parts) == 4 else None
    read = read_json_lines(root, path)
    yield from read.problems
    kind: Kind = "trace"
    for number, line in read.lines:
        broken = check(line, kind, path, number)
        if broken:
            yield from _new(broken, read.problems)
        else:
            yield from check_trace(line, definition, author, known, path, number)


def _new(found: Iterable[Problem], before: Iterable[Problem]) -> list[Problem]:
    """Return what says something of a place that nothing was said of before."""
    known = {(p.line, p.pointer) for p in before if p.pointer}
    return [p for p in found if (p.line, p.pointer) not in known]


def _unused(
    root: Path, folder: str, used: set[str], problems: list[Problem]
) -> Iterator[str]:
    """Yield the paths in a definition's folder of blobs that no workload points to."""
    if not (root / folder).is_dir():
        return
    for entry in entries(root, folder.rstrip("/"), problems):
        path = f"{folder}{entry.name}"
        if path in used:
            continue
        if entry.name.endswith(".safetensors"):
            yield path
        else:
            message = "Nothing reads this: blobs are files named *.safetensors."
            problems.append(finding("path-extension", path, message))
