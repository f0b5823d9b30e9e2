"""A report as GitHub's workflow commands, which annotate the lines of a change."""

from __future__ import annotations

from collections.abc import Iterator

from generator.problems import Problem, Severity
from generator.problems.messages import one_line
from generator.reports.report import Report, Status, against, lines_of

_LEVELS = {Status.FAILED: "error", Status.OPEN: "warning", Status.PASSED: "notice"}


def pieces(report: Report) -> Iterator[str]:
    """Yield a command for each problem and for what failed, then the summary.

    Notes are left out unless asked for.
    """
    for problem in report.problems:
        if problem.severity is not Severity.NOTE or report.notes:
            yield _problem(problem, report)
    conclusion = report.conclude()
    title = f"title={_property(report.title)}"
    for reason in against(report, conclusion):
        text = _data(one_line(reason, 1000))
        yield f"::{_LEVELS[conclusion.status]} {title}::{text}\n"
    summary = conclusion.summary
    if conclusion.verdict:
        summary = f"::notice {title}::verdict: {conclusion.verdict}; {summary}"
    yield f"{summary}\n"


def _problem(problem: Problem, report: Report) -> str:
    fields = {"file": one_line(report.prefix + problem.file, 1000)}
    line, inner = lines_of(problem)
    line = report.line_in(problem) if line is None else line
    if line is not None:
        fields["line"] = str(line)
    fields["title"] = problem.rule
    shown = ",".join(f"{name}={_property(value)}" for name, value in fields.items())
    place = f"{one_line(problem.pointer)}: " if problem.pointer else ""
    text = _data(f"{place}{inner}{problem.message} Fix: {problem.fix}")
    is_note = problem.severity is Severity.NOTE
    return f"::{'notice' if is_note else problem.severity.value} {shown}::{text}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
