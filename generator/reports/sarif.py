"""The report as SARIF 2.1.0, which code scanning services read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from generator import __version__
from generator.problems import Problem, Severity
from generator.reports import Style
from generator.reports.places import line_of_file, uri
from generator.rules.table import RULES
from generator.validate import Counts
from generator.wording import one_line

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.NOTE: "note",
}


def report(problems: Iterable[Problem], counts: Counts, style: Style) -> Iterator[str]:
    """Yield the log piece by piece: the rules first, then a result for each Problem."""
    driver = {
        "name": "trace-dataset",
        "version": __version__,
        "rules": [
            {
                "id": rule.id,
                "shortDescription": {"text": _plain(rule.explanation)},
                "help": {"text": _plain(f"{rule.fix} Finds: {rule.example}")},
                "defaultConfiguration": {"level": _LEVELS[rule.severity]},
            }
            for rule in RULES.values()
        ],
    }
    tool = json.dumps({"driver": driver})
    yield f'{{"$schema": "{SCHEMA}", "version": "2.1.0", "runs": [{{"tool": {tool},\n'
    yield '"columnKind": "unicodeCodePoints", "results": ['
    index = {rule: place for place, rule in enumerate(RULES)}
    separator = "\n"
    for problem in problems:
        yield separator + json.dumps(_result(problem, index, style))
        separator = ",\n"
    yield "\n]}]}\n"


def _result(problem: Problem, index: dict[str, int], style: Style) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": uri(problem, style)}}
    line = line_of_file(problem)
    if line is not None:
        location["region"] = {"startLine": max(1, line)}
    place: dict[str, Any] = {"physicalLocation": location}
    if problem.pointer:
        name = one_line(problem.pointer)
        place["logicalLocations"] = [{"fullyQualifiedName": name}]
    inner = ""
    if line is None and problem.line is not None:
        inner = f"Line {problem.line} of the reference: "
    return {
        "ruleId": problem.rule,
        "ruleIndex": index[problem.rule],
        "level": _LEVELS[problem.severity],
        "message": {"text": _plain(f"{inner}{problem.message} Fix: {problem.fix}")},
        "locations": [place],
    }


def _plain(text: str) -> str:
    """Return text without embedded links: `[text](target)` is one in SARIF."""
    return re.sub(r"([\\\[\]])", r"\\\1", text)
