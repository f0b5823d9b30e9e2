"""Preconditions of a push, and those that the user allowed to fail, with a reason."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from generator.dataset.artifacts import Key
from generator.dataset.changes import owner_of
from generator.dataset.definition import LoadedDefinition
from generator.dataset.paths import DatasetFile, Discovered, rendered_test
from generator.execution.cores import usable_cores
from generator.hub.remote import TESTS
from generator.problems import Failure, Problem, Severity
from generator.problems.messages import did_you_mean, one_line, quote, some
from generator.rendering.files import FileStatus
from generator.rendering.generate import generate
from generator.rendering.plan import RenderOptions
from generator.results.audits import Audited, BrokenAudit, read_audits
from generator.results.evidence import Run, kept_runs
from generator.results.sources import is_kernel
from generator.results.verification import Verification, agreed, table_of
from generator.rules.catalogue import RULES
from generator.rules.load import LoadedDefinitions, load_definitions
from generator.validation.validate import Counts, make_plan, run_plan

RENDERING = "rendering-stale"
PARTIAL = "rendering-partial"
MISSING = "evidence-missing"
FAILED = "evidence-failed"
UNREADABLE = "evidence-unreadable"
OF_TESTS = (RENDERING, PARTIAL)
OF_EVIDENCE = (MISSING, FAILED, UNREADABLE)
OWN = (*OF_TESTS, *OF_EVIDENCE)
"""Preconditions of a push beside the rules of `trace-dataset validate`."""

_LONGEST_REASON = 500


@dataclass(frozen=True)
class Objection:
    """A precondition that fails; `key` is None where all definitions share it."""

    rule: str
    key: Key | None
    message: str

    def __str__(self) -> str:
        return f"{self.message} [{self.rule}]"


@dataclass(frozen=True)
class Preconditions:
    """All objections, and the results that the pull request's description shows.

    `definitions` has those that can be read by their paths.
    """

    objections: tuple[Objection, ...]
    problems: tuple[Problem, ...]
    table: Verification
    runs: tuple[Run, ...]
    definitions: Mapping[str, LoadedDefinition]
    audits: Mapping[str, Audited]

    def split(
        self, keys: Collection[Key], allowed: Collection[str]
    ) -> tuple[list[Objection], list[Objection]]:
        """Return the objections to pushing definitions: standing, and of allowed rules."""
        mine = [o for o in self.objections if o.key is None or o.key in keys]
        standing = [o for o in mine if o.rule not in allowed]
        return standing, [o for o in mine if o.rule in allowed]


def judge(
    root: Path, files: Sequence[DatasetFile], discovered: Discovered
) -> Preconditions:
    """Check the preconditions of definitions; `discovered` are all that the dataset has."""
    names = [file.name for file in files]
    # without names: what else the op_types have is in their rendered files too
    loaded = load_definitions(root, op_types=sorted({f.op_type for f in files}))
    plan = make_plan(root, names=names if len(files) < len(discovered.files) else ())
    read = (replace(u, loaded=loaded.by_path.get(u.file.path)) for u in plan.units)
    plan = replace(plan, units=tuple(read))
    problems = tuple(run_plan(plan, Counts(), jobs=usable_cores()))
    objections = [*_of_problems(problems, {(f.op_type, f.name) for f in files})]
    objections += _of_rendering(root, loaded, {f.op_type for f in files})

    def unreadable(error: Exception) -> None:
        objections.append(Objection(UNREADABLE, None, one_line(str(error))))

    runs = kept_runs(root, on_broken=unreadable)
    chosen = Discovered(tuple(files), discovered.op_types, ())
    audits = None
    try:
        audits = read_audits(root)
    except BrokenAudit as error:
        unreadable(error)
    table = table_of(root, chosen, runs, audits)
    objections += _of_evidence(table, files)
    definitions = {definition.path: definition for definition in loaded.definitions}
    return Preconditions(
        tuple(objections), problems, table, tuple(runs), definitions, audits or {}
    )


def _of_problems(
    problems: Iterable[Problem], keys: Collection[Key]
) -> Iterator[Objection]:
    for problem in problems:
        if problem.severity is Severity.ERROR:
            owner = owner_of(problem.file)
            key = owner[0] if owner is not None and owner[0] in keys else None
            place = one_line(f"{problem.file}#{problem.pointer}".rstrip("#"))
            yield Objection(problem.rule, key, f"{place}: {problem.message}")


def _of_rendering(
    root: Path, loaded: LoadedDefinitions, op_types: Collection[str]
) -> Iterator[Objection]:
    rendered = generate(root, loaded, root / TESTS, RenderOptions(), check=True)
    behind = [o.path for o in rendered.outcomes if o.status is not FileStatus.UNCHANGED]
    if behind:
        chosen = " ".join(f"--op-type {op_type}" for op_type in sorted(op_types))
        message = (
            f"{TESTS}/ differs from what gen-tests renders now, in {some(behind, 1)}: "
            f"gen-tests {one_line(chosen)}."
        )
        yield Objection(RENDERING, None, message)


def _of_evidence(
    table: Verification, files: Iterable[DatasetFile]
) -> Iterator[Objection]:
    agreeing = agreed(table.lines)
    for line in table.failed:
        key = (line.op_type, line.definition)
        message = (
            f"{one_line(line.definition)}: {line.verdict} against "
            f"{one_line(line.source)} on {line.run.device}, {line.run.date}."
        )
        yield Objection(FAILED, key, message)
    for file in files:
        if not any(map(is_kernel, agreeing.get(file.name, ()))):
            message = (
                f"{one_line(file.name)}: no production kernel and no recording of one "
                f"agreed with this text: pytest {rendered_test(file.op_type)} --definition "
                f"{one_line(file.name)} --results results.jsonl, then trace-dataset "
                "verify --record results.jsonl."
            )
            yield Objection(MISSING, (file.op_type, file.name), message)


def of_partial(elsewhere: Sequence[str]) -> Objection:
    """Object to rendered tests that would lose definitions which are not here."""
    message = (
        f"The repository has {some([*map(one_line, elsewhere)], 1)}, which is not here: "
        f"its tests would be lost, as {TESTS} is rendered from what is here, and so "
        "would its rows in the card's tables: trace-dataset pull --all, then gen-tests "
        "--all."
    )
    return Objection(PARTIAL, None, message)


def read_allowances(values: Iterable[str]) -> dict[str, str]:
    """Return rule → reason of `RULE=REASON` texts. Raises Failure."""
    allowed: dict[str, str] = {}
    for value in values:
        rule, _, reason = value.partition("=")
        rule, reason = rule.strip(), " ".join(reason.split())
        if rule not in RULES and rule not in OWN:
            near = did_you_mean(rule, [*RULES, *OWN])
            raise Failure(f"No rule is named {quote(rule)}.{near}")
        if not 0 < len(reason) <= _LONGEST_REASON:
            raise Failure(
                f"--allow {rule} takes a reason of up to {_LONGEST_REASON} characters: "
                f"--allow {rule}='why it may be pushed'."
            )
        allowed[rule] = reason
    return allowed
