"""A report as JUnit XML: its verdict, each row with a status, and each rule is a test."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from xml.etree import ElementTree as ET
from xml.sax.saxutils import quoteattr

from generator.problems import Problem, Severity
from generator.problems.messages import one_line
from generator.reports.report import Report, Status, cases

_LISTED = 200
"""Problems that are listed for one rule; the rest is counted."""

_TAGS = {Status.PASSED: "", Status.FAILED: "failure", Status.OPEN: "skipped"}


def pieces(report: Report) -> Iterator[str]:
    """Yield the file, once everything is known: its head has the number of failures."""
    by_file: dict[str, list[Problem]] = defaultdict(list)
    counts: Counter[str] = Counter()
    for problem in report.problems:
        counts[problem.rule] += 1
        if counts[problem.rule] <= _LISTED:
            by_file[problem.rule].append(problem)
    conclusion = report.conclude()
    tests = []
    if conclusion.verdict:
        reasons = "\n".join(one_line(reason, 1000) for reason in conclusion.reasons)
        tag = _TAGS[conclusion.status]
        verdict = conclusion.verdict
        tests.append(_test(report.title, "verdict", tag, verdict, reasons or verdict))
    for group, name, text, status in cases(report):
        message = one_line(text, 1000)
        tests.append(_test(group, name, _TAGS[status], message, message))
    failing = {Severity.ERROR} | ({Severity.WARNING} if report.strict else set())
    for group, rules in report.rules.items():
        for rule in rules:
            listed, count = by_file[rule.id], counts[rule.id]
            text = "\n".join(map(str, listed))
            if count > len(listed):
                text += f"\n... and {count - len(listed)} more"
            tag = "failure" if any(p.severity in failing for p in listed) else ""
            message, kind = f"{rule.explanation} Found: {count}.", rule.severity.value
            tests.append(_test(group, rule.id, tag, message, text, kind))
    failed = sum("<failure" in test for test in tests)
    skipped = sum("<skipped" in test for test in tests)
    head = f'tests="{len(tests)}" failures="{failed}" errors="0" skipped="{skipped}"'
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f"<testsuites {head}>\n"
    yield f"<testsuite name={quoteattr(report.title)} {head}>\n"
    yield from tests
    yield "</testsuite>\n</testsuites>\n"


def _test(
    group: str, name: str, tag: str, message: str, text: str, kind: str = ""
) -> str:
    names = {"classname": one_line(group, 1000), "name": one_line(name, 1000)}
    case = ET.Element("testcase", names)
    if tag:
        attributes = {"type": kind} if kind else {}
        ET.SubElement(
            case, tag, attributes, message=one_line(message, 1000)
        ).text = text
    elif text:
        ET.SubElement(case, "system-out").text = text
    return ET.tostring(case, "unicode") + "\n"
