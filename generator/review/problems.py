"""Validate both sides of a change, and tell what is new from what was there before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from generator.dataset.artifacts import Key
from generator.dataset.changes import owner_of
from generator.dataset.paths import NOTHING_THERE
from generator.problems import Problem
from generator.validation.definition_check import CheckedDefinition, DefinitionFiles
from generator.validation.parallel import Checked, outcomes
from generator.validation.validate import Counts, ValidationPlan, make_plan, run_plan


@dataclass(frozen=True)
class ProblemChanges:
    """Hold the Problems of head that base had not, those it mended, and the rest.

    `known` counts those that both sides have.
    """

    new: tuple[Problem, ...]
    mended: tuple[Problem, ...]
    known: int
    counts: Counts


@dataclass
class Memory:
    """Keep the outcomes of one side for units that the other side has as well."""

    changed: frozenset[Key]
    paths: frozenset[str]
    kept: dict[Key, CheckedDefinition]

    def remember(self, plan: ValidationPlan, jobs: int) -> Checked:
        """Check head's units, and keep the outcomes of those that did not change."""
        for unit, outcome in outcomes(plan.root, plan.units, None, jobs):
            key = (unit.file.op_type, unit.file.name)
            if key not in self.changed:
                foreign = any(path in self.paths for path in outcome.elsewhere)
                # with a blob that changed in the folder of another definition, all of
                # what is wrong passes for new
                kept = replace(outcome, problems=()) if foreign else outcome
                self.kept[key] = kept
            yield unit, outcome

    def recall(self, plan: ValidationPlan) -> Checked:
        """Check base's units; one that did not change is what it is in head."""
        pending: list[DefinitionFiles] = []
        for unit in plan.units:
            known = self.kept.get((unit.file.op_type, unit.file.name))
            if known is None:
                pending.append(unit)
        fresh = outcomes(plan.root, pending, None, 1)
        for unit in plan.units:
            known = self.kept.get((unit.file.op_type, unit.file.name))
            yield (unit, known) if known is not None else next(fresh)


def compare_problems(
    base: Path,
    head: Path,
    changed: frozenset[Key],
    paths: frozenset[str],
    renamed: Mapping[str, str],
    jobs: int,
    *,
    is_partial: bool = False,
) -> ProblemChanges:
    """Validate two folders, of which the definitions in `changed` differ, and `paths`.

    `renamed` maps old to new paths: what was wrong with the old file is not blamed on
    the new one. Folders that are partial have of the other definitions only their own
    files: what is wrong with these is not counted.
    """
    memory = Memory(changed, paths, {})
    counts = Counts()
    plan = make_plan(head)
    found = list(run_plan(plan, counts, checked=memory.remember(plan, jobs)))
    before: Counter[tuple[str, ...]] = Counter()
    old: dict[tuple[str, ...], list[Problem]] = {}
    for problem in _of_base(base, memory):
        key = _key(problem, lambda path: renamed.get(path, path))
        before[key] += 1
        old.setdefault(key, []).append(problem)
    new = []
    known = 0
    for problem in found:
        key = _key(problem, lambda path: path)
        if before[key]:
            before[key] -= 1
            owner = owner_of(problem.file) if is_partial else None
            known += owner is None or owner[0] in changed
        else:
            new.append(problem)
    mended = [p for key, left in before.items() for p in old[key][:left] if left]
    return ProblemChanges(tuple(new), tuple(sorted(mended, key=_place)), known, counts)


def _of_base(base: Path, memory: Memory) -> Iterator[Problem]:
    plan = make_plan(base)
    # a dataset that begins with this change mends nothing
    plan = replace(
        plan, problems=tuple(p for p in plan.problems if p.rule not in NOTHING_THERE)
    )
    yield from run_plan(plan, Counts(), checked=memory.recall(plan))


def _key(problem: Problem, named: Callable[[str], str]) -> tuple[str, ...]:
    """Return what makes a Problem the same one; its line may have moved."""
    return (problem.rule, named(problem.file), problem.pointer, problem.message)


def _place(problem: Problem) -> tuple[str, str]:
    return (problem.file, problem.rule)
