"""A report as Markdown: a bounded comment or a page, and nothing quoted is markup."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from generator.problems import Severity
from generator.problems.messages import one_line
from generator.reports.report import (
    Code,
    Quoted,
    Report,
    Row,
    Section,
    Status,
    Table,
    place,
)

LIMIT = 60_000
"""Characters; GitHub takes 65,536 in a comment."""

_FOOT = 500
_REASONS = 20
_MARKS = {Status.PASSED: "✅ ", Status.FAILED: "❌ ", Status.OPEN: "❔ "}
_VERDICTS = {**_MARKS, Status.OPEN: "⏳ "}
_HEAD = ("where", "what", "fix", "rule")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 ,/=-]")


def pieces(report: Report) -> Iterator[str]:
    """Yield a comment, of which what is too long is cut, or a page of everything."""
    yield from _page(report) if report.is_page else _comment(report)


def inert(text: str, limit: int = 1000) -> str:
    """Return text that no Markdown or HTML reader takes for more than letters.

    Inside of code, names with @ and addresses are not made links either.
    """
    shown = one_line(text, limit)
    return f"<code>{_NOT_PLAIN.sub(lambda m: f'&#{ord(m[0])};', shown)}</code>"


def _shown(text: str) -> str:
    """Return a text that ends no cell and is no markup, on one line."""
    if isinstance(text, Quoted):
        return inert(text) if text else ""
    if isinstance(text, Code):
        return f"`{text}`"
    plain = one_line(text)
    for mark, shown in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|"), ("`", "\\`")):
        plain = plain.replace(mark, shown)
    return plain


def table_of(table: Table) -> str:
    """Return a report's table as Markdown."""
    lines = [f"| {' | '.join(table.columns)} |", "|" + "---|" * len(table.columns)]
    for row in table.rows:
        mark = _MARKS[row.status] if row.status is not None else ""
        named = zip(table.columns, map(_shown, row.cells), strict=True)
        cells = (mark * (name == table.marked) + cell for name, cell in named)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def rows_of(section: Section, heading: str = "**{}**") -> list[str]:
    """Return the lines of a section; a head stays with the first row under it."""
    rows: list[str] = []
    for table in section.tables:
        lines = [f"- {': '.join(map(_shown, row.cells))}" for row in table.rows]
        if table.columns:
            lines = table_of(table).split("\n")
            lines[:3] = ["\n".join(lines[:3])]
        if table.title:
            lines[:1] = ["\n\n".join([heading.format(_shown(table.title)), *lines[:1]])]
        if rows and lines:
            lines[0] = f"\n{lines[0]}"
        rows += lines
    return rows


def _page(report: Report) -> Iterator[str]:
    parts = [f"# {report.title}", report.preface]
    parts += [] if report.is_said else [report.conclude().summary]
    sections = [*report.sections]
    if report.rules:
        rows = [
            Row((f"{p.severity.value} {p.rule}", f"{p.message} Fix: {p.fix}"))
            for p in report.problems
        ]
        sections.append(Section("Problems", [Table(rows)], "" if rows else "None."))
    parts += map(_of_page, (*sections, *report.details))
    yield "\n\n".join(filter(None, parts)) + "\n"


def _of_page(section: Section) -> str:
    rows = "\n".join(rows_of(section, "### {}"))
    body = "\n\n".join(filter(None, [section.preface, rows]))
    if section.is_open:
        return f"## {section.title}\n\n{body}"
    title = _shown(section.title)
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _comment(report: Report) -> Iterator[str]:
    problems = _by_severity(report)
    sections = [*report.sections, *problems, *report.details]
    parts = [(s, rows) for s in sections if (rows := rows_of(s))]
    more = f"run `{report.command}` for all"
    head = _head(report, more)
    yield head
    left = LIMIT - _FOOT - len(head)
    needed = [sum(len(row) + 1 for row in rows) + 200 for _, rows in parts]
    for number, (section, rows) in enumerate(parts):
        # half of the room, or what the others leave
        room = max(left // 2, left - sum(needed[number + 1 :]))
        text = folded(section, rows, room, more)
        left -= len(text)
        yield text


def folded(section: Section, rows: Sequence[str], room: int, more: str) -> str:
    """Return what there is room for; rows that don't fit are counted."""
    start, end = "\n", ""
    count = len(rows) if section.count is None else section.count
    if section.title:
        opened = " open" if section.is_open else ""
        title = f"{_shown(section.title)} ({count})"
        start = f"\n<details{opened}><summary>{title}</summary>\n\n"
        end = "\n</details>\n"
    room -= len(start) + len(end) + len(more) + 20
    shown: list[str] = []
    for row in rows:
        if len(row) + 1 > room:
            break
        shown.append(f"{row}\n")
        room -= len(row) + 1
    missing = max(count, len(rows)) - len(shown)
    left = f"\n{missing} more: {more}.\n" if missing else ""
    return f"{start}{''.join(shown)}{left}{end}"


def _head(report: Report, more: str) -> str:
    conclusion = report.conclude()
    status = conclusion.status.value
    if conclusion.verdict:
        status = f"{_VERDICTS[conclusion.status]}{conclusion.verdict}"
    head = f"### {report.title}: {status}\n\n"
    head += f"{inert(report.about)}\n\n" if report.about else ""
    head += f"{conclusion.summary}\n"
    if conclusion.verdict and conclusion.reasons:
        reasons = conclusion.reasons
        shown = "".join(f"- {inert(reason, 400)}\n" for reason in reasons[:_REASONS])
        left = len(reasons) - _REASONS
        head += f"\n{shown}" + (f"- {left} more: {more}.\n" if left > 0 else "")
    return head


def _by_severity(report: Report) -> Iterator[Section]:
    """Yield a table for each severity; of very many problems only some are held."""
    rows: dict[Severity, list[Row]] = {severity: [] for severity in Severity}
    room, counts = dict.fromkeys(Severity, LIMIT), Counter[Severity]()
    for problem in report.problems:
        severity = problem.severity
        counts[severity] += 1
        if room[severity] > 0:
            cells = (place(problem), problem.message, problem.fix)
            rows[severity].append(Row((*map(Quoted, cells), Code(problem.rule))))
            room[severity] -= sum(map(len, cells))
    for severity in filter(counts.get, Severity):
        title = f"{report.kind} {severity.value}s".strip().capitalize()
        is_open, tables = severity is Severity.ERROR, [Table(rows[severity], _HEAD)]
        yield Section(title, tables, is_open=is_open, count=counts[severity])
