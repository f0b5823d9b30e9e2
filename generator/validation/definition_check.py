"""Check one definition with its workloads, blobs, solutions and traces: one unit."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.dataset.artifacts import BLOBS
from generator.dataset.blobs import Blobs
from generator.dataset.definition import LoadedDefinition, build_definition
from generator.dataset.json_file import JsonFile
from generator.dataset.paths import PATH_EXTENSION, DatasetFile, inside
from generator.dataset.schema import read_checked, read_checked_lines
from generator.ops.registry import op_specs
from generator.problems import Problem, in_file, limited
from generator.rules import (
    domains,
    figures,
    hidden_text,
    interface,
    loadable,
    others,
    proofs,
    route_calls,
    routes,
    static,
    tag_claims,
    tags,
    torch_names,
)
from generator.rules.constants import resolve_constants
from generator.rules.cross import Summary, summarise
from generator.rules.load import LoadedFile, load_file
from generator.rules.solutions import check_solution
from generator.rules.traces import TraceTargets, check_coverage, check_trace
from generator.rules.unproven import why_unproven
from generator.validation.workload_check import check_workload_file


@dataclass(frozen=True)
class DefinitionFiles:
    """The files that are checked together, relative to the dataset's root.

    `has_blobs` says that the definition has a folder of blobs, `has_oracles` that the
    dataset has one of oracles. `loaded` is what loading `file` gave, where that is known.
    """

    file: DatasetFile
    workloads: str | None = None
    solutions: tuple[str, ...] = ()
    traces: tuple[str, ...] = ()
    has_blobs: bool = False
    has_oracles: bool = False
    loaded: LoadedFile | None = None


@dataclass(frozen=True)
class CheckedDefinition:
    """The results of checking a unit.

    `name` is what the definition says, where that could be read. `elsewhere` are
    blobs in folders of other definitions that it uses, `unused` those of its own that
    it does not. `unproven` is why nothing can be compared with it, runs on record aside.
    """

    name: str | None
    problems: tuple[Problem, ...]
    workloads: int
    summary: Summary | None
    elsewhere: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    unproven: str | None = None


def check_unit(
    root: Path, unit: DefinitionFiles, config: Mapping[str, Any] | None = None
) -> CheckedDefinition:
    """Return the outcome of checking a unit; none of its code is executed.

    `config` is a model's config.json that const axes are compared with.
    """
    file = unit.file
    definition, of_file = unit.loaded or load_file(root, file)
    problems = list(of_file)
    if definition is not None:
        problems += limited(_of_definition(definition, config), file.path)
        problems += proofs.check(root, definition) if unit.has_oracles else ()
    with closing(Blobs(root)) as blobs:
        workloads = check_workload_file(root, unit.workloads, file, definition, blobs)
    problems += workloads.problems
    authors: dict[str, str] = {}
    problems += _of_solutions(root, unit.solutions, definition, authors)
    known = TraceTargets(file.name, workloads.axes, authors)
    for path in unit.traces:
        problems += limited(_of_traces(root, path, known), path)
    if unit.traces:
        problems += check_coverage(known, unit.traces[0])
    folder = f"{BLOBS}/{file.op_type}/{file.name}/"
    used = {posixpath.normpath(path) for path in blobs.states}
    listed = _unused(root, folder, used, problems) if unit.has_blobs else ()
    unused = tuple(listed)  # puts what is wrong with the folder into `problems`
    return CheckedDefinition(
        name=definition.name if definition is not None else None,
        problems=tuple(problems),
        workloads=workloads.count,
        summary=summarise(definition) if definition is not None else None,
        elsewhere=tuple(sorted(path for path in used if not path.startswith(folder))),
        unused=unused,
        unproven=why_unproven(root, definition) if definition is not None else None,
    )


def summarised(read: JsonFile, file: DatasetFile) -> CheckedDefinition:
    """Return what other definitions are compared with; what was read is not judged."""
    if not read.ok:
        return CheckedDefinition(None, (), 0, None)
    definition = build_definition(read.value, file.path, read.sha256)
    return CheckedDefinition(definition.name, (), 0, summarise(definition))


def _of_definition(
    definition: LoadedDefinition, config: Mapping[str, Any] | None
) -> Iterator[Problem]:
    spec = op_specs().get(definition.op_type)
    if spec is not None:
        yield from resolve_constants(definition, spec)[1]
    yield from tags.check(definition)
    yield from tag_claims.check(definition)
    yield from interface.check(definition)
    yield from domains.check(definition)
    yield from hidden_text.check(definition)
    yield from static.check(definition)
    yield from torch_names.check(definition)
    yield from loadable.check_definition(definition)
    yield from routes.check(definition)
    yield from route_calls.check(definition)
    yield from figures.check(definition, config)
    yield from others.check(definition)


def _of_solutions(
    root: Path,
    paths: Iterable[str],
    definition: LoadedDefinition | None,
    authors: dict[str, str],
) -> Iterator[Problem]:
    names: dict[str, str] = {}
    for path in paths:
        read = read_checked(root, path, "solution")
        yield from read.problems
        if read.ok and not read.problems:
            authors.setdefault(read.value["name"], read.value["author"])
            broken = (
                *check_solution(read.value, path, definition, names),
                *hidden_text.check_solution(read.value),
                *loadable.check_solution(read.value),
            )
            yield from limited(broken, path)


def _of_traces(root: Path, path: str, known: TraceTargets) -> Iterator[Problem]:
    parts = path.split("/")
    author = parts[1] if len(parts) == 4 else None
    read = read_checked_lines(root, path, "trace")
    yield from read.problems
    for number, line in read.lines:
        yield from in_file(check_trace(line, author, known, number), path, number)
        yield from in_file(loadable.check_trace(line), path, number)


def _unused(
    root: Path, folder: str, used: set[str], problems: list[Problem]
) -> Iterator[str]:
    """Yield the paths in a definition's folder of blobs that no workload points to."""
    for entry, path in inside(root, folder.rstrip("/"), problems):
        if path in used:
            continue
        if entry.name.endswith(".safetensors"):
            yield path
        else:
            message = "Nothing reads this: blobs are files named *.safetensors."
            problems.append(PATH_EXTENSION.problem(path, message))
