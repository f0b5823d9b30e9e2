"""The report as GitHub's workflow commands, which annotate the lines of a change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from generator.problems import Problem, Severity
from generator.reports import Style
from generator.reports.places import line_of_file
from generator.reports.text import summary
from generator.validate import Counts
from generator.wording import one_line

_COMMANDS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.NOTE: "notice",
}


def report(problems: Iterable[Problem], counts: Counts, style: Style) -> Iterator[str]:
    """Yield a command for each Problem, then the summary; notes only if asked for."""
    for problem in problems:
        if problem.severity is Severity.NOTE and not style.notes:
            continue
        fields = {"file": one_line(style.prefix + problem.file, 1000)}
        line = line_of_file(problem)
        if line is not None:
            fields["line"] = str(line)
        fields["title"] = problem.rule
        shown = ",".join(f"{name}={_property(value)}" for name, value in fields.items())
        place = f"{one_line(problem.pointer)}: " if problem.pointer else ""
        if line is None and problem.line is not None:
            place += f"line {problem.line}: "
        text = _data(f"{place}{problem.message} Fix: {problem.fix}")
        yield f"::{_COMMANDS[problem.severity]} {shown}::{text}\n"
    yield f"{summary(counts)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
