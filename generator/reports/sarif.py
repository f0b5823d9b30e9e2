"""A report as SARIF 2.1.0, which code scanning services read."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from generator import __version__
from generator.problems import Problem
from generator.problems.messages import one_line
from generator.reports.report import Report, Status, against, lines_of

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def pieces(report: Report) -> Iterator[str]:
    """Yield the log piece by piece: the rules, a result for each problem, what failed."""
    rules = [rule for group in report.rules.values() for rule in group]
    driver = {
        "name": "trace-dataset",
        "version": __version__,
        "rules": [
            {
                "id": rule.id,
                "shortDescription": {"text": _plain(rule.explanation)},
                "help": {"text": _plain(f"{rule.fix} Finds: {rule.example}")},
                "defaultConfiguration": {"level": rule.severity.value},
            }
            for rule in rules
        ],
    }
    tool = json.dumps({"driver": driver})
    yield f'{{"$schema": "{SCHEMA}", "version": "2.1.0", "runs": [{{"tool": {tool},\n'
    yield '"columnKind": "unicodeCodePoints", "results": ['
    index = {rule.id: place for place, rule in enumerate(rules)}
    separator = "\n"
    for problem in report.problems:
        yield separator + json.dumps(_result(problem, index, report))
        separator = ",\n"
    yield f'\n], "invocations": {json.dumps([_invocation(report)])}}}]}}\n'


def _invocation(report: Report) -> dict[str, Any]:
    """Return what failed and has no place in a file."""
    conclusion = report.conclude()
    level = "error" if conclusion.status is Status.FAILED else "warning"
    notifications: list[dict[str, Any]] = [
        {"level": level, "message": {"text": _plain(one_line(reason, 1000))}}
        for reason in against(report, conclusion)
    ]
    if conclusion.verdict:
        verdict = {"text": f"verdict: {conclusion.verdict}"}
        is_fine = conclusion.status is Status.PASSED
        notifications.insert(
            0, {"level": "note" if is_fine else level, "message": verdict}
        )
    return {"executionSuccessful": True, "toolExecutionNotifications": notifications}


def _result(problem: Problem, index: dict[str, int], report: Report) -> dict[str, Any]:
    # a relative URI reference, whatever bytes the name has
    uri = quote(os.fsencode(report.prefix + problem.file), safe="/")
    location: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    line, inner = lines_of(problem)
    line = report.line_in(problem) if line is None else line
    if line is not None:
        location["region"] = {"startLine": max(1, line)}
    place: dict[str, Any] = {"physicalLocation": location}
    if problem.pointer:
        name = one_line(problem.pointer)
        place["logicalLocations"] = [{"fullyQualifiedName": name}]
    return {
        "ruleId": problem.rule,
        "ruleIndex": index[problem.rule],
        "level": problem.severity.value,
        "message": {"text": _plain(f"{inner}{problem.message} Fix: {problem.fix}")},
        "locations": [place],
    }


def _plain(text: str) -> str:
    """Return text without embedded links: `[text](target)` is one in SARIF."""
    return re.sub(r"([\\\[\]])", r"\\\1", text)
