"""A report for a terminal: what matters most comes last, next to the prompt."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest

from generator.problems import Problem, Severity
from generator.problems.messages import one_line
from generator.reports.report import Report, Row, Section, Table

_LONGEST = 500
# characters of one file's problems, and files, that wait for those without an error
_HELD, _MOST_HELD = 1 << 16, 1000
# from so many problems on they are counted by rule
_COUNTED = 20
# of a column of words; what is longer is wrapped
_WIDEST = 80
# rows are not cut: what a terminal has no room for, it wraps
_WIDTH = 1000
# rows that are drawn together: a row takes a hundred times its text while it is drawn
_AT_ONCE = 256


def pieces(report: Report) -> Iterator[str]:
    """Yield details, problems, sections and the summary; notes only if asked for."""
    if report.about:
        yield f"{one_line(report.about)}\n"
    for section in report.details:
        yield from _section(section)
    yield from _problems(report)
    for section in report.sections:
        yield from _section(section)
    conclusion = report.conclude()
    if conclusion.verdict:
        yield "\n"
    if not report.is_said:
        yield f"{conclusion.summary}\n"
    if conclusion.verdict:
        yield f"verdict: {conclusion.verdict}\n"
        yield from (f"  {_shown(reason)}\n" for reason in conclusion.reasons)


def _problems(report: Report) -> Iterator[str]:
    """Yield the problems by file, files with an error last, then how many a rule has."""
    head = "\n" if report.details else ""
    head += f"{report.kind} problems\n" if report.kind else ""
    held: list[str] = []
    counts: Counter[tuple[Severity, str]] = Counter()
    shown = (
        p for p in report.problems if report.notes or p.severity is not Severity.NOTE
    )
    for file, of_file in groupby(shown, key=lambda problem: problem.file):
        text, has_error = f"{one_line(file)}\n", False
        for problem in of_file:
            counts[problem.severity, problem.rule] += 1
            has_error |= problem.severity is Severity.ERROR
            text += _problem(problem)
            if len(text) > _HELD:
                # a file of very many is shown as it comes
                yield head + text
                head, text = "", ""
        if has_error and len(held) < _MOST_HELD:
            held.append(text)
        else:
            yield head + text
            head = ""
    for text in held:
        yield head + text
        head = ""
    if sum(counts.values()) >= _COUNTED:
        order = sorted(
            counts.items(), key=lambda one: (one[0][0] is Severity.ERROR, one[1])
        )
        yield "by rule\n"
        yield from (f"  {n:>6} {kind.value:<8} {rule}\n" for (kind, rule), n in order)


def _problem(problem: Problem) -> str:
    line = f"line {problem.line}: " if problem.line is not None else ""
    place = f"{one_line(problem.pointer)}: " if problem.pointer else ""
    what = f"{line}{place}{problem.message} [{problem.rule}]"
    return f"  {problem.severity.value}: {what}\n    fix: {problem.fix}\n"


def _section(section: Section) -> Iterator[str]:
    indent, head = (
        ("  ", f"\n{one_line(section.title)}\n") if section.title else ("", "")
    )
    for table in section.tables:
        if not (table.rows or table.title):
            continue
        yield head
        # a line of its own parts a table from what follows
        head, inner = "\n" if table.columns else "", indent
        if table.title:
            yield f"{indent}{_shown(table.title)}\n"
            inner += "  "
        yield from (f"{inner}{line}\n" for line in _table(table))


def _table(table: Table) -> Iterator[str]:
    if not table.columns:
        yield from (": ".join(map(_shown, row.cells)) for row in table.rows)
        return
    from rich.cells import cell_len

    totals = table.totals if len(table.rows) > 1 else ()
    footer = totals or [""] * len(table.columns)
    cells = [table.columns, footer, *(map(_shown, row.cells) for row in table.rows)]
    # a row may be shorter than the head
    columns = zip_longest(*cells, fillvalue="")
    widths = [max(map(cell_len, column)) for column in columns]
    for first in range(0, len(table.rows) or 1, _AT_ONCE):
        rows = table.rows[first : first + _AT_ONCE]
        is_last = first + _AT_ONCE >= len(table.rows)
        text = _drawn(table, rows, widths, first == 0, totals if is_last else ())
        yield from text.split("\n")


def _drawn(
    table: Table,
    rows: Sequence[Row],
    widths: Sequence[int],
    has_head: bool,
    totals: Sequence[str],
) -> str:
    """Return the text of some rows of a table, whose columns have the widths of all."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as Made

    made = Made(
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_header=has_head,
        show_footer=bool(totals),
    )
    footer = totals or [""] * len(table.columns)
    for name, total, width in zip(table.columns, footer, widths, strict=True):
        is_words = name in table.words
        made.add_column(
            name,
            footer=total,
            justify="left" if is_words else "right",
            no_wrap=not is_words,
            overflow="fold",
            width=min(width, _WIDEST) if is_words else width,
        )
    for row in rows:
        made.add_row(*map(_shown, row.cells))
    text = io.StringIO()
    # what a dataset says is no markup, and a file has no colours
    Console(file=text, width=_WIDTH, markup=False, highlight=False).print(made)
    lines = (line.rstrip() for line in text.getvalue().splitlines())
    return "\n".join(lines).strip("\n")


def _shown(text: str) -> str:
    return one_line(text, _LONGEST)
