"""A report as JUnit XML: its verdict, each row with a status, and each rule is a test."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from generator.problems import Problem, Severity
from generator.problems.messages import one_line
from generator.problems.rule import Rule
from generator.reports.report import Report, Status, cases

_LISTED = 200
"""Problems that are listed for one rule; the rest is counted."""

_TAGS = {Status.PASSED: "", Status.FAILED: "failure", Status.OPEN: "skipped"}


def pieces(report: Report) -> Iterator[str]:
    """Yield the file, once everything is known: its head has the number of failures."""
    found: dict[str, list[Problem]] = {}
    counts: dict[str, int] = {}
    for problem in report.problems:
        counts[problem.rule] = counts.get(problem.rule, 0) + 1
        listed = found.setdefault(problem.rule, [])
        if len(listed) < _LISTED:
            listed.append(problem)
    conclusion = report.conclude()
    tests = []
    if conclusion.verdict:
        reasons = "\n".join(one_line(reason, 1000) for reason in conclusion.reasons)
        tag = _TAGS[conclusion.status]
        tests.append(_test(report.title, "verdict", tag, conclusion.verdict, reasons))
    for group, name, text, status in cases(report):
        said = one_line(text, 1000)
        tests.append(_test(group, name, _TAGS[status], said, said))
    for group, rules in report.rules.items():
        for rule in rules:
            listed, count = found.get(rule.id, []), counts.get(rule.id, 0)
            tests.append(_of_rule(group, rule, listed, count, report.strict))
    failed = sum("<failure" in test for test in tests)
    skipped = sum("<skipped" in test for test in tests)
    head = f'tests="{len(tests)}" failures="{failed}" errors="0" skipped="{skipped}"'
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f"<testsuites {head}>\n"
    yield f"<testsuite name={quoteattr(report.title)} {head}>\n"
    yield from tests
    yield "</testsuite>\n</testsuites>\n"


def _of_rule(
    group: str, rule: Rule, listed: list[Problem], count: int, strict: bool
) -> str:
    failing = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
    text = "\n".join(map(str, listed))
    if count > len(listed):
        text += f"\n... and {count - len(listed)} more"
    tag = "failure" if any(p.severity in failing for p in listed) else ""
    said = f"{rule.explanation} Found: {count}."
    return _test(group, rule.id, tag, said, text, rule.severity.value)


def _test(
    group: str, name: str, tag: str, message: str, text: str, kind: str = ""
) -> str:
    head = f"<testcase classname={_quoted(group)} name={_quoted(name)}"
    if tag:
        said = f"type={quoteattr(kind)} " if kind else ""
        said += f"message={_quoted(message)}"
        return f"{head}><{tag} {said}>{escape(text)}</{tag}></testcase>\n"
    if text:
        return f"{head}><system-out>{escape(text)}</system-out></testcase>\n"
    return f"{head}/>\n"


def _quoted(text: str) -> str:
    return quoteattr(one_line(text, 1000))
