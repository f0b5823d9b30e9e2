"""Validate a dataset: every definition with all that belongs to it, as a stream."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generator.attached import Key, discover_attached
from generator.cache import Cache
from generator.discover import (
    Discovered,
    discover_definitions,
    discover_workloads,
)
from generator.fi_api import installed_flashinfer
from generator.load import problems_of_paths
from generator.outcome import Outcome, Unit
from generator.parallel import outcomes
from generator.passed import Evidence
from generator.problems import Problem, Severity
from generator.rules.audits import Audits
from generator.rules.cross import Beside
from generator.rules.names import check_unique
from generator.rules.table import RULES, finding
from generator.select import select
from generator.wording import quote

Checked = Iterator[tuple[Unit, Outcome]]
"""Units of a plan, in its order, each with what checking it found."""

_SORTED = 20_000
"""Problems that are put in order of their files; more are passed on as they come."""


@dataclass(frozen=True)
class Plan:
    """Hold what a validation will look at, and what discovery found wrong.

    `whole` says that all of the dataset was asked for: only then can something be
    said to be used by nothing.
    """

    root: Path
    units: tuple[Unit, ...]
    found: Discovered
    problems: tuple[Problem, ...]
    whole: bool


@dataclass
class Counts:
    """Count what a validation looked at, and what it found so far, by severity."""

    definitions: int = 0
    workloads: int = 0
    found: dict[Severity, int] = field(
        default_factory=lambda: dict.fromkeys(Severity, 0)
    )


@dataclass(frozen=True)
class Validation:
    """Hold what a validation found, and how many things it looked at.

    `definitions` counts files and `workloads` lines, whether they were right or not.
    """

    problems: tuple[Problem, ...]
    definitions: int
    workloads: int


def validate(
    root: Path, *, op_types: Sequence[str] = (), names: Sequence[str] = ()
) -> Validation:
    """Validate the dataset at `root`, all of it or what is selected, in one process.

    Raises UnknownName for an op_type or a name that the dataset does not have.
    """
    counts = Counts()
    plan = make_plan(root, op_types=op_types, names=names)
    problems = tuple(run_plan(plan, counts))
    return Validation(problems, counts.definitions, counts.workloads)


def make_plan(
    root: Path, *, op_types: Sequence[str] = (), names: Sequence[str] = ()
) -> Plan:
    """Find the files of a dataset and what was asked for of them; raises UnknownName."""
    found = discover_definitions(root)
    if not found.op_types:
        return Plan(root, (), found, found.problems, whole=True)
    files = select(found, op_types, names)
    whole = len(files) == len(found.files)
    asked = (op_types, names) if not whole else ((), ())
    problems = problems_of_paths(found, *asked)
    workloads = discover_workloads(root)
    known = {(file.op_type, file.name) for file in found.files}
    attached = discover_attached(root, known.__contains__)
    present = {(file.op_type, file.name): file.path for file in workloads.files}
    if whole:
        problems += workloads.problems
        problems += attached.problems
        for (op_type, name), path in present.items():
            if (op_type, name) not in known:
                message = f"There is no definition {quote(name)} in op_type "
                message += f"{quote(op_type)}."
                problems.append(finding("workload-orphan", path, message))
    units = []
    for file in files:
        key: Key = (file.op_type, file.name)
        solutions = tuple(attached.solutions.get(key, ()))
        traces = tuple(attached.traces.get(key, ()))
        units.append(Unit(file, present.get(key), solutions, traces))
    return Plan(root, tuple(units), found, tuple(problems), whole)


def run_plan(
    plan: Plan,
    counts: Counts,
    *,
    rules: Collection[str] = frozenset(RULES),
    config: Mapping[str, Any] | None = None,
    cache: Cache | None = None,
    jobs: int = 1,
    checked: Checked | None = None,
) -> Iterator[Problem]:
    """Yield the Problems of `rules`, sorted by file unless there are very many.

    `counts` grows with them and is right once the last one was yielded. `checked` are
    the plan's units in order with their outcomes, where the caller has them.
    """
    if checked is None:
        checked = outcomes(plan.root, plan.units, config, cache, jobs)
    found = _found(plan, counts, checked)
    chosen = (
        found if len(rules) == len(RULES) else (p for p in found if p.rule in rules)
    )
    for problem in _ordered(chosen):
        counts.found[problem.severity] += 1
        yield problem


def _found(plan: Plan, counts: Counts, checked: Checked) -> Iterator[Problem]:
    yield from plan.problems
    renamed: dict[str, str] = {}
    unused: list[str] = []
    elsewhere: set[str] = set()
    beside = Beside(installed_flashinfer(), Evidence(plan.root))
    audits = Audits(plan.root)
    yield from audits.of_file()
    for unit, outcome in checked:
        counts.definitions += 1
        counts.workloads += outcome.workloads
        yield from outcome.problems
        if outcome.summary is not None:
            yield from beside.add(outcome.summary)
            yield from audits.add(outcome.summary)
        if outcome.name is not None and outcome.name != unit.file.name:
            renamed[unit.file.path] = outcome.name
        unused += outcome.unused
        elsewhere.update(outcome.elsewhere)
    if plan.whole:
        for path in unused:
            if path not in elsewhere:
                yield finding("blob-unused", path, "No workload points to this blob.")
    # a file that was not read has the name that its path says
    names = {f.path: renamed.get(f.path, f.name) for f in plan.found.files}
    selected = {unit.file.path for unit in plan.units}
    yield from (p for p in check_unique(names) if p.file in selected)


def _ordered(problems: Iterable[Problem]) -> Iterator[Problem]:
    held: list[Problem] = []
    rest = iter(problems)
    for problem in rest:
        held.append(problem)
        if len(held) == _SORTED:
            break
    yield from sorted(held, key=lambda p: p.file)
    yield from rest
