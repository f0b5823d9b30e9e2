"""Read the results of the reference tests out of a JUnit file, as old runs left them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

from generator.problems.failure import Failure
from generator.problems.messages import quote
from generator.results.run_results import Results, json_value, results_of
from generator.testing.obstacle import SKIP_KIND

_STATUSES = {"skipped": "skipped", "failure": "failed", "error": "error"}


class _WithoutDoctype(ET.TreeBuilder):
    """Build the tree of a document; refuse document types: entities can be bombs."""

    def doctype(self, *_: object) -> None:
        raise ValueError("it has a document type")


def parse_junit(data: bytes, name: str) -> Results:
    """Return the reference tests of a JUnit file; a Failure names it."""
    try:
        root = ET.fromstring(data, parser=ET.XMLParser(target=_WithoutDoctype()))
    except (ET.ParseError, LookupError, ValueError) as error:
        raise Failure(f"{name} is not JUnit XML: {error}") from None
    if root.tag not in ("testsuites", "testsuite"):
        raise Failure(f"{name} is not JUnit XML: its root is {quote(root.tag)}")
    suite = next(root.iter("testsuite"), root)
    machine = dict(_properties(suite))
    return results_of(name, suite.get("timestamp"), machine, _tests(root))


def _properties(element: ET.Element) -> list[tuple[str, str]]:
    """Return the properties of a suite or a test, in their order."""
    found = element.iterfind("properties/property")
    return [(item.get("name") or "", item.get("value") or "") for item in found]


def _tests(root: ET.Element) -> Iterator[dict[str, Any]]:
    """Yield each reference test as a line of the results has it."""
    for case in root.iter("testcase"):
        properties = _properties(case)
        records = [json_value(v) for name, v in properties if name == "comparison"]
        known = dict(properties)
        if known.get("definition"):
            group = (case.get("classname") or "").rpartition(".")[2]
            yield {
                "test": f"{group}::{case.get('name') or ''}",
                "definition": known["definition"],
                "sha256": known.get("sha256", ""),
                "source": known.get("source"),
                **_ending(case),
                "seconds": float(case.get("time") or 0.0),
                "skip_kind": known.get(SKIP_KIND, ""),
                "comparisons": records,
            }


def _ending(case: ET.Element) -> dict[str, str]:
    """Return a test's status, and the first line that says why."""
    ending = {"status": "passed", "message": ""}
    for tag, status in _STATUSES.items():
        element = case.find(tag)
        if element is not None:
            text = f"{element.get('message') or ''}\n{element.text or ''}"
            lines = (line.strip() for line in text.splitlines())
            ending = {"status": status, "message": next(filter(None, lines), "")}
    return ending
