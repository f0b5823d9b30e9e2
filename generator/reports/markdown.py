"""The report as Markdown for a comment: bounded, and nothing of the dataset is markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from generator.problems import Problem, Severity
from generator.reports import Style
from generator.reports.text import summary
from generator.validate import Counts
from generator.wording import one_line

LIMIT = 60_000
"""Characters; GitHub takes 65,536 in a comment."""

_FOOT = 1_000
_SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.NOTE)
_TITLES = {
    Severity.ERROR: "Errors",
    Severity.WARNING: "Warnings",
    Severity.NOTE: "Notes",
}
_HEAD = "| where | what | fix | rule |\n|---|---|---|---|\n"
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 ,/=-]")


def report(problems: Iterable[Problem], counts: Counts, style: Style) -> Iterator[str]:
    """Yield the summary, then a table for each severity; what is too long is cut."""
    tables: dict[Severity, list[str]] = {severity: [] for severity in _SEVERITIES}
    sizes = dict.fromkeys(_SEVERITIES, 0)
    for problem in problems:
        # errors take what there is; the others what errors leave
        if sizes[problem.severity] < LIMIT:
            row = _row(problem)
            tables[problem.severity].append(row)
            sizes[problem.severity] += len(row)
    failed = counts.found[Severity.ERROR] or (
        style.strict and counts.found[Severity.WARNING]
    )
    head = f"### Dataset validation: {'failed' if failed else 'passed'}\n\n"
    yield f"{head}{summary(counts)}\n"
    left = LIMIT - _FOOT
    for severity in _SEVERITIES:
        if tables[severity]:
            text, left = _section(severity, tables[severity], counts, left)
            yield text


def _section(
    severity: Severity, rows: list[str], counts: Counts, left: int
) -> tuple[str, int]:
    shown = []
    for row in rows:
        if len(row) > left:
            break
        shown.append(row)
        left -= len(row)
    missing = counts.found[severity] - len(shown)
    title = f"{_TITLES[severity]} ({counts.found[severity]})"
    body = _HEAD + "".join(shown) if shown else ""
    more = f"\n{missing} more: run `trace-dataset validate`.\n" if missing else ""
    opened = " open" if severity is Severity.ERROR else ""
    return (
        f"\n<details{opened}><summary>{title}</summary>\n\n{body}{more}\n</details>\n",
        left,
    )


def _row(problem: Problem) -> str:
    place = f"{problem.file}#{problem.pointer}" if problem.pointer else problem.file
    if problem.line is not None:
        place += f" line {problem.line}"
    cells = (inert(place, 300), inert(problem.message), inert(problem.fix))
    return f"| {' | '.join(cells)} | `{problem.rule}` |\n"


def inert(text: str, limit: int = 1000) -> str:
    """Return text that no Markdown or HTML reader takes for more than letters.

    Inside of code, names with @ and addresses are not made links either.
    """
    shown = one_line(text, limit)
    return f"<code>{_NOT_PLAIN.sub(lambda m: f'&#{ord(m[0])};', shown)}</code>"
