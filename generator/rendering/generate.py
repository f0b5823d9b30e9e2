"""Render loaded definitions into files of a folder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generator.dataset.definition import LoadedDefinition
from generator.dataset.file_reading import file_below, read_text
from generator.ops.serving import why_not_served
from generator.problems import Problem
from generator.problems.messages import plural
from generator.rendering.custom import Custom, read_custom
from generator.rendering.files import (
    MOST_RENDERED,
    FileOutcome,
    FileStatus,
    write_files,
)
from generator.rendering.plan import (
    CUSTOM,
    OTHER,
    OWN,
    RenderOptions,
    TestPlan,
    module_name,
    plan_tests,
)
from generator.rendering.read_back import rendered_definitions
from generator.rendering.render import render_shared_files, render_test_file
from generator.rendering.standalone import is_standalone, standalone
from generator.rules.load import LoadedDefinitions, load_definitions
from generator.rules.proofs import Forward, Text, proof_of
from generator.rules.runtime_rules import edited, kept
from generator.rules.unproven import Agreed, never, why_no_op, why_unproven


@dataclass(frozen=True)
class Generated:
    """Each file's outcome, the number of definitions rendered, and Problems.

    `unproven` says of definitions why they have no ground truth and no oracle.
    """

    outcomes: tuple[FileOutcome, ...]
    definitions: int
    problems: tuple[Problem, ...]
    plans: tuple[TestPlan, ...] = ()
    unproven: Mapping[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> tuple[FileOutcome, ...]:
        """Return the outcomes to print: all but unchanged files."""
        return tuple(o for o in self.outcomes if o.status is not FileStatus.UNCHANGED)

    @property
    def incomplete(self) -> bool:
        """Return whether a file is out of date, or was edited and not overwritten."""
        return any(
            o.status in (FileStatus.EDITED, FileStatus.DRIFTED, FileStatus.KEPT)
            for o in self.outcomes
        )

    @property
    def summary(self) -> str:
        """Return the counts of definitions, test files and outcomes as one line."""
        files = [o for o in self.outcomes if Path(o.path).name.startswith("test_")]
        counts = [
            f"{sum(o.status is status for o in self.outcomes)} {status.value}"
            for status in FileStatus
            if any(o.status is status for o in self.outcomes)
        ]
        return (
            f"{plural(self.definitions, 'definition')} in "
            f"{plural(len(files), 'test file')}; "
            f"files: {', '.join(counts) or 'none'}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {
            "definitions": self.definitions,
            "unproven": dict(self.unproven),
            "files": [
                {"path": o.path, "status": o.status.value} for o in self.outcomes
            ],
            "problems": [problem.as_dict() for problem in self.problems],
        }


def generate(
    dataset: Path,
    loaded: LoadedDefinitions,
    output: Path,
    options: RenderOptions,
    *,
    by_name: bool = False,
    everything: bool = False,
    force: bool = False,
    check: bool = False,
    agreed: Agreed = never,
) -> Generated:
    """Render the loaded definitions into `output`.

    `by_name`: single definitions were chosen; a file keeps the others that it holds.
    `everything`: all definitions are loaded; files of other op_types are removed.
    `agreed` is `why_unproven`'s. Definitions with errors are left out. Raises OSError
    if writing fails.
    """
    groups: dict[tuple[str, str], list[LoadedDefinition]] = defaultdict(list)
    problems = list(loaded.problems)
    customs: dict[str, Custom] = {}

    def kind_of(definition: LoadedDefinition) -> str:
        """Return what a test file's name says of the functions that its tests have."""
        custom = read_custom(dataset, definition)
        if isinstance(custom, Custom):
            customs[definition.name] = custom
        elif custom is not None:
            problems.append(custom)
        if definition.name in customs:
            return CUSTOM
        return OTHER if why_not_served(definition) else OWN

    for definition in loaded.definitions:
        groups[definition.op_type, kind_of(definition)].append(definition)
    files = {}
    plans = []
    count = 0
    for (op_type, kind), definitions in sorted(groups.items()):
        name = f"{module_name(op_type, kind)}.py"
        if by_name:
            others, more_problems = _held_definitions(
                dataset, output / name, definitions
            )
            definitions += [d for d in others if kind_of(d) == kind]
            problems += more_problems
        plan = plan_tests(
            op_type,
            definitions,
            options,
            custom=customs if kind == CUSTOM else None,
            proofs=_proofs(dataset, definitions) if kind != CUSTOM else None,
        )
        plans.append(plan)
        problems += plan.problems
        count += len(plan.classes)
        files[name] = render_test_file(plan)
    stay = {} if force else _kept(dataset, output, files, loaded)
    problems += [kept(name, broken) for name, broken in stay.items()]
    files = {name: text for name, text in files.items() if name not in stay}
    if files:
        files |= render_shared_files()
        chosen = options.standalone
        if is_standalone(output) if chosen is None else chosen:
            files = standalone(files)
    # the op_type of a definition that can't be loaded must keep its test file
    complete = everything and bool(files) and not loaded.unfit and not _unread(loaded)
    outcomes = write_files(
        output, files, dataset=dataset, force=force, check=check, complete=complete
    )
    reasons = {
        definition.name: why_unproven(dataset, definition, agreed)
        for definition in loaded.definitions
    }
    unproven = {name: why for name, why in reasons.items() if why is not None}
    outcomes += [FileOutcome(name, FileStatus.KEPT) for name in sorted(stay)]
    problems += [
        edited(o.path, has_crlf=o.has_crlf)
        for o in outcomes
        if o.status is FileStatus.EDITED
    ]
    return Generated(tuple(outcomes), count, tuple(problems), tuple(plans), unproven)


def _proofs(
    dataset: Path, definitions: Iterable[LoadedDefinition]
) -> dict[str, Text | Forward]:
    """Return what proves the definitions that no op serves, by name."""
    proofs = {d.name: proof_of(dataset, d) for d in definitions if why_no_op(d)}
    return {name: proof for name, proof in proofs.items() if not isinstance(proof, str)}


def _kept(
    dataset: Path, output: Path, files: Iterable[str], loaded: LoadedDefinitions
) -> dict[str, set[str]]:
    """Return the files that test definitions which can't be rendered now, and these.

    Written without them, a file would lose their tests in silence.
    """
    fit = {definition.path for definition in loaded.definitions}
    broken = {file.name for file in loaded.files if file.path not in fit}
    by_name = {}
    # none is broken, mostly: then nothing is read
    for name in files if broken else ():
        try:
            text = read_text(*file_below(dataset, output / name), MOST_RENDERED)
        except OSError:
            continue
        if lost := rendered_definitions(text).keys() & broken:
            by_name[name] = set(lost)
    return by_name


def _unread(loaded: LoadedDefinitions) -> bool:
    return len(loaded.files) > len(loaded.definitions)


def _held_definitions(
    dataset: Path, file: Path, definitions: list[LoadedDefinition]
) -> tuple[list[LoadedDefinition], list[Problem]]:
    """Return the other definitions that a rendered file holds, and their Problems.

    A definition that can't be loaded any more is left out; its Problems say why.
    """
    try:
        text = read_text(*file_below(dataset, file), MOST_RENDERED)
    except OSError:
        return [], []
    held = rendered_definitions(text).keys() - {d.name for d in definitions}
    if not held:
        return [], []
    loaded = load_definitions(dataset, op_types=[definitions[0].op_type])
    files = {file.path for file in loaded.files if file.name in held}
    return (
        [d for d in loaded.definitions if d.name in held],
        [problem for problem in loaded.problems if problem.file in files],
    )
