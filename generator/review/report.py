"""Report of a review."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from generator.dataset.problem_lines import ProblemLines
from generator.evaluation.verdict import PASSED, SKIPPED
from generator.problems import Severity
from generator.problems.messages import one_line, plural, some
from generator.reports.report import (
    Code,
    Conclusion,
    Quoted,
    Report,
    Row,
    Section,
    Status,
    Table,
)
from generator.review.answers import NO, UNKNOWN, YES
from generator.review.change import Change
from generator.review.checklist import ChecklistAnswer
from generator.review.checks import CheckChange
from generator.review.decision import Decision, by_weight
from generator.review.findings import RULES
from generator.review.review import Review
from generator.review.treatment import Treatment
from generator.rules.catalogue import GROUPS

if TYPE_CHECKING:
    from generator.review.executed import Executed
    from generator.review.solutions import EvaluatedChange

_VERDICTS = {PASSED: Status.PASSED, SKIPPED: Status.OPEN}
_CLAIMS = 200
_FILES = 5
_CHECKS = 200
_ANSWERS = {YES: Status.PASSED, NO: Status.FAILED, UNKNOWN: Status.OPEN}


def review_report(review: Review, *, prefix: str = "", notes: bool = False) -> Report:
    """Return the report: the checklist matters most, what changed is detail."""
    reasons = ("Nothing changed.",) if review.is_empty else tuple(_reasons(review))
    conclusion = Conclusion(
        review.decision.status, counted(review), review.decision.value, reasons
    )
    is_short = len(review.answers) <= 16
    return Report(
        title="Dataset review",
        command="trace-dataset review --format text",
        conclusion=conclusion,
        payload=review.as_dict(),
        sections=(
            Section("What to run on a GPU", [_quoted(review.to_run)]),
            Section("Changed files", _if_any(classes(review))),
            Section(
                "What tests check, before and after", _if_any(of_checks(review.checks))
            ),
            Section("Checklist", _if_any(checklist(review.answers)), is_open=is_short),
        ),
        problems=(*review.findings, *review.compared.new),
        details=tuple(_details(review)),
        rules={**GROUPS, "review": RULES},
        about=headline(review),
        kind="new",
        prefix=prefix,
        notes=notes,
        line_in=ProblemLines(None if review.known is None else review.known.root),
    )


def _reasons(review: Review) -> Iterator[str]:
    """Yield the grounds in words; those that ask for less than the verdict say for what."""
    for reason in by_weight(review.grounds):
        asks = reason.decision.value
        is_verdict = reason.decision is review.decision
        yield str(reason) if is_verdict else f"{asks}: {reason}"


def _if_any(table: Table) -> list[Table]:
    return [table] if table.rows else []


def checklist(answers: Iterable[ChecklistAnswer]) -> Table:
    """Return answers as a table; advice is no test case, whatever its answer."""
    rows = []
    for a in answers:
        cells = (Quoted(a.definition), a.point, a.answer, Quoted(a.seen))
        rows.append(Row(cells, _ANSWERS.get(a.answer) if a.required else None))
    columns = ("definition", "point", "answer", "seen")
    return Table(rows, columns, words=columns, keys=2, marked="answer")


def classes(review: Review) -> Table:
    """Return each class of changed files: what was checked of it, and what not."""
    against = {f: r.decision for r in reversed(review.grounds) for f in r.files}
    rows = []
    for treatment, paths in review.by_treatment().items():
        asked = {against.get(path, Decision.APPROVE) for path in paths}
        status = Status.OPEN if treatment.could else Status.PASSED
        if asked & {Decision.PERSON, Decision.GPU}:
            status = Status.OPEN
        if Decision.CHANGES in asked:
            status = Status.FAILED
        rows.append(Row(_class_cells(treatment, paths), status))
    columns = ("files", "checked", "not checked", "named")
    return Table(rows, columns, words=columns, marked="files")


def _class_cells(treatment: Treatment, paths: Sequence[str]) -> tuple[str, ...]:
    named = some([one_line(path, 120) for path in paths], _FILES)
    name = f"{treatment.name} ({len(paths)})"
    return name, treatment.checked, treatment.unchecked, Quoted(named)


def of_checks(checks: Sequence[CheckChange]) -> Table:
    """Return what tests check otherwise than before, what is weaker first."""
    rows = []
    for c in sorted(checks, key=lambda c: not c.is_weaker)[:_CHECKS]:
        cells = (c.effect, f"{c.kind} {c.name}", c.before, c.after, c.file)
        # what is weaker is a problem of its file
        rows.append(Row((cells[0], *map(Quoted, cells[1:]))))
    columns = ("effect", "what", "before", "after", "where")
    return Table(rows, columns, words=columns, keys=2)


def _details(review: Review) -> Iterator[Section]:
    changes = [_change(change) for change in review.changes]
    yield Section("What changed", changes, is_open=False, count=len(changes))
    if review.executed is not None:
        yield Section("Executed", [_quoted(of_run(review.executed))])
    if review.crossed is not None:
        yield Section("Software", [_quoted(review.crossed.lines)])
    if review.evaluated is not None:
        yield Section("Solutions", [of_solutions(review.evaluated)])
        yield Section("Traces against a fresh run", [of_claims(review.evaluated)])
    mended = [
        Row((Code(problem.rule), Quoted(problem.file), Quoted(problem.message)))
        for problem in review.compared.mended
    ]
    yield Section("Mended problems", [Table(mended)], is_open=False)


def _quoted(lines: Iterable[str]) -> Table:
    return Table([Row((Quoted(line),)) for line in lines])


def _change(change: Change) -> Table:
    differences = (Row((d.part, Quoted(d.text))) for d in change.differences)
    rows = (Row((Quoted(line),)) for line in details(change))
    return Table([*differences, *rows], title=Quoted(title(change)))


def headline(review: Review) -> str:
    """Return which revisions were compared."""
    head = review.revisions.head[:12] or "the working tree"
    base = review.revisions.base[:12] or "an empty dataset"
    return f"Review of {head} against {base} ({review.revisions.said})"


def title(change: Change) -> str:
    """Return what happened to which definition."""
    if change.kind == "renamed":
        return f"renamed: {change.old_path} to {change.path}"
    if change.kind == "attached":
        return f"files beside {change.path}"
    return f"{change.kind}: {change.path}"


def details(change: Change) -> Iterator[str]:
    """Yield lines on the interface of a new definition, workloads and other files."""
    new = change.new
    if change.kind == "new" and new is not None:
        axes = (
            f"{n} = {'?' if a.value is None else a.value}" for n, a in new.axes.items()
        )
        yield f"axes: {', '.join(axes)}"
        yield f"inputs: {', '.join(new.inputs)}; outputs: {', '.join(new.outputs)}"
        yield f"tags: {', '.join(new.tags) or 'none'}"
    if change.kind == "changed" and change.old is not None and new is not None:
        if not change.differences:
            yield "only the layout of the file changed"
        elif not change.computes:
            yield "what it computes did not change"
    work = change.workloads
    if work is not None and "workloads" in change.files:
        yield (
            f"workloads: {work.base} before, {work.head} now: {work.added} added, "
            f"{work.removed} removed, {work.changed} changed; {work.said_ranges}"
        )
    for kind in ("blobs", "recording", "solutions", "traces"):
        counts = change.files.get(kind, {}).items()
        if counts:
            lines = (f"{plural(count, 'file')} {what}" for what, count in counts)
            yield f"{kind}: {', '.join(lines)}"


def counted(review: Review) -> str:
    """Return how many problems are new, mended, and were there before."""
    compared = review.compared
    return (
        f"{plural(review.count(Severity.ERROR), 'new error')}, "
        f"{plural(review.count(Severity.WARNING), 'new warning')}, "
        f"{plural(review.count(Severity.NOTE), 'new note')}; "
        f"{len(compared.mended)} mended, {compared.known} there before; "
        f"{plural(compared.counts.definitions, 'definition')} in all"
    )


def of_run(executed: Executed) -> Iterator[str]:
    """Yield what a run showed, and what of it is believed."""
    yield (
        f"on {executed.device}: {executed.passed} passed, {len(executed.failed)} failed, "
        f"{executed.skipped} skipped, in {executed.seconds:.1f} s"
    )
    for name in executed.failed[:20]:
        yield f"failed: {name}"
    for problem in executed.problems:
        yield f"not believed: {problem}"
    for layer in executed.layers:
        yield f"the sandbox lacks: {layer}"
    yield (
        "A failed test counts against the change. A passed test counts for little: the "
        "reference ran in the same process as the tests and could have changed their "
        "result. On a CPU it never makes the verdict better."
    )


def of_solutions(evaluated: EvaluatedChange) -> Table:
    """Return the verdicts on the solutions of a change as a table."""
    rows = []
    for v in evaluated.verdicts:
        status = _VERDICTS.get(v.verdict, Status.FAILED)
        where = f"{v.case}: " if v.case and v.reason else ""
        cells = (Quoted(v.path), v.verdict, Quoted(f"{where}{v.reason}"))
        rows.append(Row(cells, status))
    columns = ("solution", "verdict", "reason")
    return Table(rows, columns, words=columns, marked="verdict")


def of_claims(evaluated: EvaluatedChange) -> Table:
    """Return what new traces say beside what a run found, what is false first."""
    rows = []
    for claim in sorted(evaluated.claims, key=lambda claim: not claim.is_false)[
        :_CLAIMS
    ]:
        status = Status.PASSED if claim.found == PASSED else Status.OPEN
        cells = (
            Quoted(f"{claim.file}:{claim.line}"),
            Quoted(f"{claim.solution}, {claim.workload}"),
            claim.status,
            claim.found,
            Quoted(claim.why),
        )
        rows.append(Row(cells, Status.FAILED if claim.is_false else status))
    columns = ("trace", "solution, workload", "claims", "is", "because")
    return Table(rows, columns, words=columns, keys=2, marked="is")
