"""Report of performance regressions."""

from __future__ import annotations

from collections.abc import Sequence

from generator.evaluation.against import Slower
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

_COLUMNS = ("definition", "hardware", "solution", "workload", "before", "now", "slower")


def against_report(slower: Sequence[Slower], compared: int, against: str) -> Report:
    """Return the report; it failed where something is slower that nobody waived."""
    failed = [one for one in slower if not one.waiver]
    waived = [one for one in slower if one.waiver]
    summary = (
        f"{plural(compared, 'time')} compared with {against}: "
        f"{len(failed)} slower, {len(waived)} slower and waived"
    )
    rows = [_row(one) for one in failed]
    accepted = [Row((*_row(one).cells, one.waiver), Status.OPEN) for one in waived]
    sections = [
        Section("Slower", [Table(rows, _COLUMNS, _COLUMNS[:4])]),
        Section("Waived", [Table(accepted, (*_COLUMNS, "reason"), _COLUMNS[:4])]),
    ]
    status = Status.FAILED if failed else Status.PASSED
    return Report(
        title="Times against earlier ones",
        command="trace-dataset traces --against",
        conclusion=Conclusion(status, summary),
        payload={"compared": compared, "slower": [one.as_dict() for one in slower]},
        sections=sections,
        is_said=True,
    )


def _row(one: Slower) -> Row:
    names = (one.definition, one.hardware or "-", one.solution, one.workload)
    times = (f"{one.before_ms:.4f}", f"{one.after_ms:.4f}", f"{100 * one.share:.1f} %")
    return Row((*map(Quoted, names), *times), Status.FAILED)
