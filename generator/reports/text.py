"""The report for a terminal: the problems under the file that has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from generator.problems import Problem, Severity
from generator.reports import Style
from generator.validate import Counts
from generator.wording import one_line, plural


def report(problems: Iterable[Problem], counts: Counts, style: Style) -> Iterator[str]:
    """Yield lines, the summary last; notes are left out unless asked for."""
    file = None
    for problem in problems:
        if problem.severity is Severity.NOTE and not style.notes:
            continue
        if problem.file != file:
            file = problem.file
            yield f"{one_line(file)}\n"
        line = f"line {problem.line}: " if problem.line is not None else ""
        place = f"{one_line(problem.pointer)}: " if problem.pointer else ""
        what = f"{line}{place}{problem.message} [{problem.rule}]"
        yield f"  {problem.severity.value}: {what}\n    fix: {problem.fix}\n"
    yield f"{summary(counts, hint='' if style.notes else ' (--notes shows them)')}\n"


def summary(counts: Counts, hint: str = "") -> str:
    """Return what was looked at and found; notes only where there are some."""
    found = counts.found
    notes = plural(found[Severity.NOTE], "note")
    return (
        f"{plural(counts.definitions, 'definition')}, "
        f"{plural(counts.workloads, 'workload')}: "
        f"{plural(found[Severity.ERROR], 'error')}, "
        f"{plural(found[Severity.WARNING], 'warning')}"
    ) + (f", {notes}{hint}" if found[Severity.NOTE] else "")
