"""The verdicts on solutions as a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from generator.evaluation.verdict import ORDER, PASSED, SKIPPED, SolutionVerdict
from generator.problems.messages import plural
from generator.reports.report import (
    Conclusion,
    Quoted,
    Report,
    Row,
    Section,
    Status,
    Table,
)

_COLUMNS = ("solution", "definition", "verdict", "cases", "seconds", "reason")
_TIMES = ("solution", "case", "ms", "spread", "reference", "production", "speedup")
_STATUSES = {PASSED: Status.PASSED, SKIPPED: Status.OPEN}


def evaluation_report(verdicts: Sequence[SolutionVerdict]) -> Report:
    """Return the report of an evaluation; it failed where a solution is refused."""
    counts = Counter(verdict.verdict for verdict in verdicts)
    shown = (name for name in ORDER if counts[name])
    summary = f"{plural(len(verdicts), 'solution')}: " + ", ".join(
        f"{counts[name]} {name}" for name in shown
    )
    failed = any(not verdict.is_fine for verdict in verdicts)
    tables = [
        Table(
            [_row(verdict) for verdict in verdicts],
            _COLUMNS,
            words=("solution", "definition", "verdict", "reason"),
        )
    ]
    times = [row for verdict in verdicts for row in _times(verdict)]
    if times:
        tables.append(Table(times, _TIMES, words=("solution", "case"), keys=2))
    notes = dict.fromkeys((v.definition, note) for v in verdicts for note in v.notes)
    tables.append(Table([Row((Quoted(name), note)) for name, note in notes]))
    return Report(
        title="Evaluation of solutions",
        command="trace-dataset evaluate --json",
        conclude=lambda: Conclusion(
            Status.FAILED if failed else Status.PASSED, summary
        ),
        payload={
            "totals": {"solutions": len(verdicts), **counts},
            "solutions": [verdict.as_dict() for verdict in verdicts],
        },
        sections=[Section("", tables)],
        is_said=True,
    )


def _row(verdict: SolutionVerdict) -> Row:
    where = f"{verdict.case}: " if verdict.case and verdict.reason else ""
    cells = (
        Quoted(verdict.solution),
        Quoted(verdict.definition),
        verdict.verdict,
        str(len(verdict.cases)),
        f"{verdict.seconds:.1f}",
        f"{where}{verdict.reason}",
    )
    status = _STATUSES.get(verdict.verdict, Status.FAILED)
    return Row(cells, status, f"{verdict.verdict}: {where}{verdict.reason}")


def _times(verdict: SolutionVerdict) -> list[Row]:
    rows = []
    for case in verdict.cases:
        if (timing := case.timing) is not None:
            figures = [
                timing["latency_ms"],
                timing["spread_ms"],
                timing["reference_latency_ms"],
                timing.get("production_latency_ms"),
            ]
            cells = ["" if f is None else f"{f:.4f}" for f in figures]
            speedup = f"{timing['speedup_factor']:.2f}"
            rows.append(
                Row((Quoted(verdict.solution), Quoted(case.case), *cells, speedup))
            )
    return rows
