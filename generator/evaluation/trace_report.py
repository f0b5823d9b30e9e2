"""The statistics of a dataset's traces as a report."""

from __future__ import annotations

from generator.evaluation.trace_statistics import (
    CONTRADICTED,
    STALE,
    SolutionStatistics,
    TraceStatistics,
)
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

_BEST = ("definition", "hardware", "solution", "author", "passed", "speedup", "won")
_AUTHORS = ("author", "solutions", "won")
_SHOWN = 20
"""Doubtful traces of a kind that are shown; JSON has more."""


def traces_report(statistics: TraceStatistics) -> Report:
    """Return the report: the best solutions, who won, and what can't be believed."""
    best = [row for row in statistics.solutions if row.is_best]
    summary = (
        f"{plural(statistics.traces, 'trace')}: {statistics.stale} stale, "
        f"{statistics.contradicted} contradicted, {statistics.unreadable} unreadable; "
        f"{plural(len(best), 'best solution')}"
    )
    authors = [
        Row((Quoted(a.author or "-"), str(a.solutions), _share(a.won, a.contested)))
        for a in statistics.authors
    ]
    sections = [
        Section(
            "Best solutions", [Table([_best(row) for row in best], _BEST, _BEST[:4])]
        ),
        Section("Authors", [Table(authors, _AUTHORS, _AUTHORS[:1])]),
    ]
    for kind, count in (
        (STALE, statistics.stale),
        (CONTRADICTED, statistics.contradicted),
    ):
        rows = [
            Row(
                (
                    Quoted(d.file),
                    Quoted(f"{d.solution}, {d.workload}"),
                    Quoted(d.reason),
                ),
                Status.FAILED,
            )
            for d in statistics.doubtful
            if d.kind == kind
        ]
        title = f"{kind.capitalize()} traces"
        shown = Table(rows[:_SHOWN], keys=2)
        if count > _SHOWN:
            more = (f"and {count - _SHOWN} more", "--json lists up to 1000")
            shown = Table([*rows[:_SHOWN], Row(more)], keys=2)
        sections.append(Section(title, [shown], count=count))
    unread = [
        Row((Quoted(file), f"{plural(lines, 'line')}: trace-dataset validate says why"))
        for file, lines in statistics.unread
    ]
    hidden = len(unread) - _SHOWN
    if hidden > 0:
        unread[_SHOWN:] = [Row((f"and {hidden} more", "--json lists up to 1000"))]
    files = Table(unread, keys=1)
    count = len(statistics.unread)
    sections.append(Section("Lines that are no traces", [files], count=count))
    status = Status.PASSED if statistics.is_fine else Status.FAILED
    return Report(
        title="Statistics of the traces",
        command="trace-dataset traces",
        conclusion=Conclusion(status, summary),
        payload=statistics.as_dict(),
        sections=sections,
        is_said=True,
    )


def _best(row: SolutionStatistics) -> Row:
    speedup = "-" if row.speedup is None else f"{row.speedup:.3g}"
    names = (row.definition, row.hardware or "-", row.solution, row.author or "-")
    passed = f"{row.passed} / {row.traced}"
    return Row((*map(Quoted, names), passed, speedup, _share(row.won, row.contested)))


def _share(won: int, contested: int) -> str:
    """Return `12 / 40 (30 %)`."""
    if not contested:
        return "-"
    return f"{won} / {contested} ({100 * won / contested:.0f} %)"
