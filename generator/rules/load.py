"""Load a dataset's definitions: each becomes a Definition, or Problems say why not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from generator.dataset.definition import Definition, build_definition
from generator.dataset.json_file import read_json
from generator.dataset.paths import (
    DatasetFile,
    Discovered,
    discover_definitions,
    problems_of_paths,
    select,
)
from generator.dataset.schema import at_new_places, check
from generator.problems import Problem
from generator.problems.limit import limited
from generator.rules import axes, constraints, names, reference, returns

RULES_OF_A_DEFINITION: tuple[Callable[[Definition], list[Problem]], ...] = (
    names.check_path,
    names.check_keywords,
    names.check_tokens,
    axes.check_declared,
    axes.check_case,
    axes.check_used,
    axes.check_overlap,
    constraints.check,
    reference.check,
    returns.check,
)


@dataclass(frozen=True)
class Loaded:
    """Hold what was loaded and everything that is wrong with it.

    `definitions` are fit to be rendered, sorted by op_type and name; `unfit` ones fit
    the schema but break a rule that forbids rendering. `files` are those selected,
    loaded or not; `names` and `op_types` are all that the dataset has.
    """

    definitions: tuple[Definition, ...]
    unfit: tuple[Definition, ...]
    problems: tuple[Problem, ...]
    files: tuple[DatasetFile, ...]
    names: tuple[str, ...]
    op_types: tuple[str, ...]


def load_definitions(
    root: Path, *, op_types: Sequence[str] = (), names: Sequence[str] = ()
) -> Loaded:
    """Load the definitions under `root`, all or those with an op_type or a name.

    Only selected files are read. Raises UnknownName for an op_type or a name that the
    dataset does not have; everything else that can be wrong is in `problems`, sorted
    by file. No code of a definition is executed.
    """
    # the catalogue imports every check
    from generator.rules.catalogue import is_blocked

    found = discover_definitions(root)
    if not found.op_types:
        return Loaded((), (), found.problems, (), (), ())
    files = select(found, op_types, names)
    loaded = [load_file(root, file) for file in files]
    problems = problems_of_paths(found, op_types, names)
    for _, of_file in loaded:
        problems += of_file
    built = [definition for definition, _ in loaded if definition is not None]
    repeated = _repeated(found, built, files)
    problems += repeated
    blocked = {p.file for p in problems if is_blocked([p])}
    built.sort(key=lambda d: (d.op_type, d.name))
    return Loaded(
        definitions=tuple(d for d in built if d.path not in blocked),
        unfit=tuple(d for d in built if d.path in blocked),
        problems=tuple(sorted(problems, key=lambda p: p.file)),
        files=files,
        names=tuple(sorted({file.name for file in found.files})),
        op_types=found.op_types,
    )


def load_file(root: Path, file: DatasetFile) -> tuple[Definition | None, list[Problem]]:
    """Return the definition in one file, None where it fits no schema, and Problems."""
    read = read_json(root, file.path)
    problems = list(read.problems)
    if not read.ok:
        return None, problems
    broken = check(read.value, "definition", file.path)
    problems += at_new_places(broken, problems)
    if broken:
        return None, problems
    definition = build_definition(read.value, file.path, read.sha256)
    of_rules = (p for rule in RULES_OF_A_DEFINITION for p in rule(definition))
    return definition, problems + list(limited(of_rules, file.path))


def _repeated(
    found: Discovered, built: Iterable[Definition], files: Sequence[DatasetFile]
) -> list[Problem]:
    """Return Problems for selected files whose name another file has as well.

    A file that was not read has the name that its path says.
    """
    by_path = {file.path: file.name for file in found.files}
    by_path.update({definition.path: definition.name for definition in built})
    selected = {file.path for file in files}
    return [p for p in names.check_unique(by_path) if p.file in selected]
