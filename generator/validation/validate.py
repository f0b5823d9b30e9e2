"""Validate a dataset: every definition with all that belongs to it, as a stream."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from generator.dataset.artifacts import BLOB_UNUSED, discover_artifacts
from generator.dataset.file_reading import is_absent
from generator.dataset.paths import (
    NOTHING_THERE,
    ORACLES,
    DatasetFile,
    Discovered,
    discover_definitions,
    problems_of_paths,
    select,
)
from generator.dataset.problem_lines import ProblemLines
from generator.problems import Problem, Severity, in_file
from generator.problems.messages import plural
from generator.reports.report import Conclusion, Report, Status
from generator.results.kernel_evidence import KernelEvidence
from generator.rules.accepted import AcceptedErrors, read_accepted
from generator.rules.catalogue import GROUPS
from generator.rules.cross import Beside, installed_flashinfer
from generator.rules.load import repeated_names
from generator.rules.loadable import check_solution_names
from generator.rules.others import other_rules
from generator.rules.unproven import UNPROVEN, unproven_line
from generator.validation.definition_check import DefinitionFiles
from generator.validation.parallel import Checked, outcomes
from generator.validation.recorded import Audits

_SORTED = 20_000
"""Problems that are put in order of their files; more are passed on as they come."""


@dataclass(frozen=True)
class ValidationPlan:
    """The files to validate, and the Problems of finding them.

    `whole` says that all of the dataset was asked for: only then can a blob be known to
    be unused.
    """

    root: Path
    units: tuple[DefinitionFiles, ...]
    discovered: Discovered
    problems: tuple[Problem, ...]
    whole: bool


@dataclass
class Counts:
    """Count definitions and workloads, and the Problems found so far by severity.

    `unproven` says of definitions why they have no ground truth and no oracle.
    """

    definitions: int = 0
    workloads: int = 0
    found: dict[Severity, int] = field(
        default_factory=lambda: dict.fromkeys(Severity, 0)
    )
    unproven: dict[str, str] = field(default_factory=dict)


def make_plan(
    root: Path,
    *,
    op_types: Sequence[str] = (),
    names: Sequence[str] = (),
    elsewhere: Sequence[DatasetFile] = (),
) -> ValidationPlan:
    """Find a dataset's files, all or those of op_types or names; raises UnknownName.

    `elsewhere` are definitions of the dataset whose files are not below `root`: the
    caller has what checking them gives.
    """
    # before the work: a distribution whose rules are broken ends it
    other_rules()
    discovered = _with(discover_definitions(root), elsewhere)
    if not discovered.op_types:
        return ValidationPlan(root, (), discovered, discovered.problems, whole=True)
    files = select(discovered, op_types, names)
    whole = len(files) == len(discovered.files)
    asked = (op_types, names) if not whole else ((), ())
    problems = problems_of_paths(discovered, *asked)
    known = {(file.op_type, file.name) for file in discovered.files}
    artifacts = discover_artifacts(root, known)
    problems += artifacts.problems if whole else []
    has_oracles = not is_absent(root, ORACLES)
    units = []
    for file in files:
        key = (file.op_type, file.name)
        (workloads,) = artifacts.workloads.get(key, (None,))
        solutions = tuple(artifacts.solutions.get(key, ()))
        traces = tuple(artifacts.traces.get(key, ()))
        has = (key in artifacts.blobs, has_oracles)
        units.append(DefinitionFiles(file, workloads, solutions, traces, *has))
    return ValidationPlan(root, tuple(units), discovered, tuple(problems), whole)


def _with(discovered: Discovered, elsewhere: Sequence[DatasetFile]) -> Discovered:
    """Return what was discovered, with definitions that lie elsewhere."""
    if not elsewhere:
        return discovered
    return Discovered(
        tuple(sorted({*discovered.files, *elsewhere})),
        tuple(sorted({*discovered.op_types, *(file.op_type for file in elsewhere)})),
        tuple(p for p in discovered.problems if p.rule not in NOTHING_THERE),
    )


def run_plan(
    plan: ValidationPlan,
    counts: Counts,
    *,
    rules: Collection[str] | None = None,
    config: Mapping[str, Any] | None = None,
    jobs: int = 1,
    checked: Checked | None = None,
    accepted: AcceptedErrors | None = None,
) -> Iterator[Problem]:
    """Yield the Problems of `rules`, or of all rules, sorted by file.

    Only the first 20,000 are sorted: more are yielded as they are found.
    `counts` grows with them and is right once the last one was yielded. `checked` are
    the plan's units in order with their outcomes, where the caller has them. `accepted`
    are the errors that the dataset lives with, its own where the caller has no others.
    """
    if checked is None:
        checked = outcomes(plan.root, plan.units, config, jobs)
    of_others = accepted is not None
    if accepted is None:
        accepted = read_accepted(plan.root)
    problems = _judged(_found(plan, counts, checked), accepted)
    if plan.whole and not of_others:
        problems = chain(problems, accepted.unused())
    chosen = problems if rules is None else (p for p in problems if p.rule in rules)
    for problem in _ordered(chosen):
        counts.found[problem.severity] += 1
        yield problem


def _found(plan: ValidationPlan, counts: Counts, checked: Checked) -> Iterator[Problem]:
    yield from plan.problems
    renamed: dict[str, str] = {}
    unused: list[str] = []
    elsewhere: set[str] = set()
    evidence = KernelEvidence(plan.root)
    beside = Beside(installed_flashinfer(), evidence)
    # processes have their work before this one reads the audit
    begun = [*islice(checked, 1)]
    audits = Audits(plan.root)
    yield from audits.problems
    for unit, outcome in chain(begun, checked):
        path = unit.file.path
        counts.definitions += 1
        counts.workloads += outcome.workloads
        yield from outcome.problems
        known = outcome.summary
        if outcome.unproven and known and not evidence(known.name, known.basis):
            counts.unproven[known.name] = outcome.unproven
            yield UNPROVEN.problem(path, f"Nothing is compared: {outcome.unproven}.")
        if outcome.summary is not None:
            yield from in_file(beside.add(outcome.summary), path)
            yield from in_file(audits.check(outcome.summary), path)
        if outcome.name is not None and outcome.name != unit.file.name:
            renamed[path] = outcome.name
        unused += outcome.unused
        elsewhere.update(outcome.elsewhere)
    for path in unused if plan.whole else ():
        if path not in elsewhere:
            yield BLOB_UNUSED.problem(path, "No workload points to this blob.")
    yield from check_solution_names(
        path for unit in plan.units for path in unit.solutions
    )
    selected = (unit.file for unit in plan.units)
    yield from repeated_names(plan.discovered.files, renamed, selected)


def _judged(problems: Iterable[Problem], accepted: AcceptedErrors) -> Iterator[Problem]:
    yield from accepted.problems
    yield from map(accepted.judged, problems)


def _ordered(problems: Iterable[Problem]) -> Iterator[Problem]:
    rest = iter(problems)
    yield from sorted(islice(rest, _SORTED), key=lambda p: p.file)
    yield from rest


def validation_report(
    problems: Iterable[Problem],
    counts: Counts,
    *,
    prefix: str = "",
    notes: bool = False,
    strict: bool = False,
    hint: str = "",
    root: Path | None = None,
) -> Report:
    """Return the report of problems as they come; `counts` is right after the last.

    `hint` follows the number of notes where there are some. In files of `root` the lines
    of problems are looked up.
    """

    def conclude() -> Conclusion:
        errors, warnings, noted = (counts.found[severity] for severity in Severity)
        failed = errors or (strict and warnings)
        summary = (
            f"{plural(counts.definitions, 'definition')}, "
            f"{plural(counts.workloads, 'workload')}: "
            f"{plural(errors, 'error')}, {plural(warnings, 'warning')}"
        )
        if noted:
            summary += f", {plural(noted, 'note')}{hint}"
        if counts.unproven:
            summary += f"; {unproven_line(counts.unproven)}"
        return Conclusion(Status.FAILED if failed else Status.PASSED, summary)

    return Report(
        title="Dataset validation",
        command="trace-dataset validate",
        conclusion=conclude,
        payload={
            "problems": (problem.as_dict() for problem in problems),
            "counts": lambda: {
                "definitions": counts.definitions,
                "workloads": counts.workloads,
                "unproven": counts.unproven,
                **{f"{s.value}s": count for s, count in counts.found.items()},
            },
        },
        problems=problems,
        rules=GROUPS,
        prefix=prefix,
        notes=notes,
        strict=strict,
        line_in=ProblemLines(root),
    )
