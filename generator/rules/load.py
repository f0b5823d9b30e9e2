"""Load a dataset's definitions: each becomes a Definition, or Problems say why not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from generator.dataset.definition import LoadedDefinition, build_definition
from generator.dataset.paths import (
    DatasetFile,
    discover_definitions,
    problems_of_paths,
    select,
)
from generator.dataset.schema import read_checked
from generator.problems import Problem, limited
from generator.rules import constraints, names, reference

RULES_OF_A_DEFINITION: tuple[Callable[[LoadedDefinition], Iterable[Problem]], ...] = (
    names.check,
    constraints.check,
    reference.check,
)

LoadedFile = tuple[LoadedDefinition | None, list[Problem]]
"""A definition, None where the file fits no schema, and what is wrong with it."""


@dataclass(frozen=True)
class LoadedDefinitions:
    """Loaded definitions, and every problem of their files.

    `definitions` are fit to be rendered, sorted by op_type and name; `unfit` ones fit
    the schema but break a rule that forbids rendering. `files` are those selected,
    loaded or not; `names` and `op_types` are all that the dataset has. `by_path` has
    what loading each of the files gave.
    """

    definitions: tuple[LoadedDefinition, ...]
    unfit: tuple[LoadedDefinition, ...]
    problems: tuple[Problem, ...]
    files: tuple[DatasetFile, ...]
    names: tuple[str, ...]
    op_types: tuple[str, ...]
    by_path: Mapping[str, LoadedFile] = field(default_factory=dict)


def load_definitions(
    root: Path, *, op_types: Sequence[str] = (), names: Sequence[str] = ()
) -> LoadedDefinitions:
    """Load the definitions under `root`, all or those with an op_type or a name.

    Only selected files are read. Raises UnknownName for an op_type or a name that the
    dataset does not have; everything else that can be wrong is in `problems`, sorted
    by file. No code of a definition is executed.
    """
    # the catalogue imports every check
    from generator.rules.catalogue import is_blocked

    discovered = discover_definitions(root)
    if not discovered.op_types:
        return LoadedDefinitions((), (), discovered.problems, (), (), ())
    files = select(discovered, op_types, names)
    problems = problems_of_paths(discovered, op_types, names)
    by_path = {file.path: load_file(root, file) for file in files}
    problems += [problem for _, of_file in by_path.values() for problem in of_file]
    built = [definition for definition, _ in by_path.values() if definition is not None]
    renamed = {definition.path: definition.name for definition in built}
    problems += repeated_names(discovered.files, renamed, files)
    blocked = {p.file for p in problems if is_blocked([p])}
    built.sort(key=lambda d: (d.op_type, d.name))
    return LoadedDefinitions(
        definitions=tuple(d for d in built if d.path not in blocked),
        unfit=tuple(d for d in built if d.path in blocked),
        problems=tuple(sorted(problems, key=lambda p: p.file)),
        files=files,
        names=tuple(sorted({file.name for file in discovered.files})),
        op_types=discovered.op_types,
        by_path=by_path,
    )


def load_file(root: Path, file: DatasetFile) -> LoadedFile:
    """Return the definition in one file, and what is wrong with it."""
    read = read_checked(root, file.path, "definition")
    problems = list(read.problems)
    if not read.ok:
        return None, problems
    definition = build_definition(read.value, file.path, read.sha256)
    broken = (p for rule in RULES_OF_A_DEFINITION for p in rule(definition))
    return definition, problems + list(limited(broken, file.path))


def repeated_names(
    files: Iterable[DatasetFile],
    renamed: Mapping[str, str],
    selected: Iterable[DatasetFile],
) -> list[Problem]:
    """Return Problems for selected files whose name another file has as well.

    A file that is not in `renamed`, a path's real name, has the name that its path says.
    """
    by_path = {f.path: renamed.get(f.path, f.name) for f in files}
    paths = {file.path for file in selected}
    return [p for p in names.check_unique(by_path) if p.file in paths]
