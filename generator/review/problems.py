"""Validate both sides of a change, and tell what is new from what was there before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from generator.dataset.artifacts import Key
from generator.dataset.changes import owner_of
from generator.dataset.paths import NOTHING_THERE
from generator.problems import Problem
from generator.review.sources import Sources
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


def compare_problems(
    sources: Sources, renamed: Mapping[str, str], jobs: int
) -> ProblemChanges:
    """Validate both sides; a definition that did not change is checked once.

    `renamed` maps old to new paths: what was wrong with the old file is not blamed on
    the new one. Folders that are partial have of the other definitions only their own
    files: what is wrong with these is not counted.
    """
    changed, counts = sources.sorted.definitions, Counts()
    plan = make_plan(sources.head)
    checked = list(outcomes(plan.root, plan.units, None, jobs))
    found = list(run_plan(plan, counts, checked=iter(checked)))
    before = make_plan(sources.base)
    # a dataset that begins with this change mends nothing
    there = tuple(p for p in before.problems if p.rule not in NOTHING_THERE)
    before = replace(before, problems=there)
    again = _again(before, checked, sources)
    old: dict[tuple[str, ...], list[Problem]] = defaultdict(list)
    for problem in run_plan(before, Counts(), checked=again):
        old[_key(problem, renamed)].append(problem)
    new, known = [], 0
    for problem in found:
        same = old[_key(problem, {})]
        if not same:
            new.append(problem)
            continue
        same.pop()
        owner = owner_of(problem.file) if sources.is_partial else None
        known += owner is None or owner[0] in changed
    mended = (problem for left in old.values() for problem in left)
    by_place = sorted(mended, key=lambda problem: (problem.file, problem.rule))
    return ProblemChanges(tuple(new), tuple(by_place), known, counts)


def _again(
    before: ValidationPlan,
    head: Iterable[tuple[DefinitionFiles, CheckedDefinition]],
    sources: Sources,
) -> Checked:
    """Yield base's units; the outcome of one that did not change is what it is in head.

    With a blob that changed in the folder of another definition, all of what is wrong
    passes for new.
    """
    kept: dict[Key, CheckedDefinition] = {}
    for unit, outcome in head:
        if _of(unit) not in sources.sorted.definitions:
            is_same = sources.sides.changed.isdisjoint(outcome.elsewhere)
            kept[_of(unit)] = outcome if is_same else replace(outcome, problems=())
    pending = [unit for unit in before.units if _of(unit) not in kept]
    fresh = outcomes(before.root, pending, None, 1)
    for unit in before.units:
        yield (unit, kept[_of(unit)]) if _of(unit) in kept else next(fresh)


def _of(unit: DefinitionFiles) -> Key:
    return (unit.file.op_type, unit.file.name)


def _key(problem: Problem, renamed: Mapping[str, str]) -> tuple[str, ...]:
    """Return what makes a Problem the same one; its line may have moved."""
    file = renamed.get(problem.file, problem.file)
    return (problem.rule, file, problem.pointer, problem.message)
