"""Validate both sides of a change, and tell what is new from what was there before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from generator.dataset.artifacts import Key
from generator.dataset.paths import NOTHING_THERE
from generator.problems import Problem
from generator.review.sources import Sources
from generator.rules.workloads import WORKLOAD_MISSING
from generator.validation.definition_check import CheckedDefinition, DefinitionFiles
from generator.validation.parallel import outcomes
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
    """Validate what is judged of both sides, and the other definitions' own files.

    `renamed` maps old to new paths: what was wrong with the old file is not blamed on
    the new one.
    """
    counts = Counts()
    head, base = make_plan(sources.head), make_plan(sources.base)
    # a dataset that begins with this change mends nothing
    there = tuple(p for p in base.problems if p.rule not in NOTHING_THERE)
    base = replace(base, problems=there)
    same = {_of(unit): unit for unit in head.units if _of(unit) not in sources.judged}
    own = [replace(x, workloads=None, solutions=(), traces=()) for x in same.values()]
    others = {
        _of(unit): _of_own_file(outcome, same[_of(unit)])
        for unit, outcome in outcomes(sources.head, own, None, jobs)
    }

    def problems(plan: ValidationPlan, counts: Counts) -> Iterator[Problem]:
        judged = [unit for unit in plan.units if _of(unit) not in others]
        fresh = outcomes(plan.root, judged, None, jobs)
        checked = (
            (unit, others[_of(unit)]) if _of(unit) in others else next(fresh)
            for unit in plan.units
        )
        return run_plan(plan, counts, checked=checked)

    old: dict[tuple[str, ...], list[Problem]] = defaultdict(list)
    for problem in problems(base, Counts()):
        old[_key(problem, renamed)].append(problem)
    new, known = [], 0
    for problem in problems(head, counts):
        if before := old[_key(problem, {})]:
            before.pop()
            known += 1
        else:
            new.append(problem)
    mended = (problem for left in old.values() for problem in left)
    by_place = sorted(mended, key=lambda problem: (problem.file, problem.rule))
    return ProblemChanges(tuple(new), tuple(by_place), known, counts)


def _of_own_file(found: CheckedDefinition, unit: DefinitionFiles) -> CheckedDefinition:
    """Return an outcome without what only shows that the other files were left out."""
    problems = found.problems
    if unit.workloads is not None:
        problems = tuple(p for p in problems if p.rule != WORKLOAD_MISSING.id)
    return replace(found, problems=problems, unused=())


def _of(unit: DefinitionFiles) -> Key:
    return (unit.file.op_type, unit.file.name)


def _key(problem: Problem, renamed: Mapping[str, str]) -> tuple[str, ...]:
    """Return what makes a Problem the same one; its line may have moved."""
    file = renamed.get(problem.file, problem.file)
    return (problem.rule, file, problem.pointer, problem.message)
