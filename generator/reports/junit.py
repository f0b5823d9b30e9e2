"""The report as JUnit XML: each rule is a test, which fails where it found something."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape, quoteattr

from generator.problems import Problem, Severity
from generator.reports import Style
from generator.rules.explain import group_of
from generator.rules.table import RULES
from generator.validate import Counts

_LISTED = 200
"""Problems that are listed for one rule; the rest is counted."""


def report(problems: Iterable[Problem], counts: Counts, style: Style) -> Iterator[str]:
    """Yield the file, once everything is known: its head has the number of failures."""
    lines: dict[str, list[str]] = {}
    found: dict[str, int] = {}
    for problem in problems:
        found[problem.rule] = found.get(problem.rule, 0) + 1
        listed = lines.setdefault(problem.rule, [])
        if len(listed) < _LISTED:
            listed.append(str(problem))
    failing = {Severity.ERROR, Severity.WARNING} if style.strict else {Severity.ERROR}
    failed = [rule for rule in found if RULES[rule].severity in failing]
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    head = f'tests="{len(RULES)}" failures="{len(failed)}" errors="0" skipped="0"'
    yield f"<testsuites {head}>\n"
    yield f'<testsuite name="trace-dataset validate" {head}>\n'
    for rule in RULES.values():
        name, group = quoteattr(rule.id), quoteattr(group_of(rule.id))
        yield f"<testcase classname={group} name={name}"
        if rule.id not in found:
            yield "/>\n"
            continue
        text = "\n".join(lines[rule.id])
        if found[rule.id] > _LISTED:
            text += f"\n... and {found[rule.id] - _LISTED} more"
        if rule.id in failed:
            said = quoteattr(f"{rule.explanation} Found: {found[rule.id]}.")
            kind = quoteattr(rule.severity.value)
            yield f"><failure type={kind} message={said}>{escape(text)}</failure>"
        else:
            yield f"><system-out>{escape(text)}</system-out>"
        yield "</testcase>\n"
    yield "</testsuite>\n</testsuites>\n"
