"""Read what a run of the reference tests left in its JUnit file."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

from generator.error_maps import read_error_map
from generator.wording import one_line, quote

MAX_BYTES = 256 * 1024 * 1024
VERDICTS = ("PASSED", "FAILED", "ERROR")
_TEXTS = ("definition", "source", "case", "output")
_FACTS = "device cpu gpu sm memory_gib driver python torch cuda flashinfer sglang"


@dataclass(frozen=True)
class TestResult:
    """Hold one test: whom it is about, how it ended, and what it compared.

    `source` is what it compares with, None for a test that compares with nothing;
    `status` is passed, failed, error or skipped, and `message` says why.
    """

    function: str
    definition: str
    sha256: str
    source: str | None
    status: str
    message: str
    seconds: float
    comparisons: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Results:
    """Hold one run: its date (2026-11-21, or empty), its machine, its reference tests."""

    date: str
    machine: Mapping[str, str]
    tests: tuple[TestResult, ...] = field(default=())


def read_junit(path: Path, without: Collection[str] = ()) -> Results:
    """Return the reference tests of a JUnit file, in its order.

    `without` are the ids of tests that are left out, as `statuses_in` has them. Raises OSError where the file can't be read, ValueError where it is not a JUnit file
    or holds no reference test. Document types are refused: entities can be bombs.
    """
    root = _parse(path)
    if root.tag not in ("testsuites", "testsuite"):
        raise ValueError(f"{path} is not JUnit XML: its root is {quote(root.tag)}")
    try:
        tests = tuple(
            test
            for case in root.iter("testcase")
            if _id_of(case) not in without
            for test in _tests_of(case)
        )
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        text = one_line(str(error), 120)
        raise ValueError(f"{path} has a damaged test result: {text}") from None
    if not tests:
        raise ValueError(
            f"{path} holds no reference test: make it by "
            f"pytest tests/references --junitxml {path.name}"
        )
    suite = root if root.tag == "testsuite" else root.find("testsuite")
    timestamp = suite.get("timestamp") or "" if suite is not None else ""
    date = re.match(r"\d{4}-\d\d-\d\d", timestamp, re.ASCII)
    facts = _properties(suite.find("properties")) if suite is not None else []
    machine = {
        name: one_line(value, 80) for name, value in facts if name in _FACTS.split()
    }
    return Results(date.group() if date else "", machine, tests)


def statuses_in(path: Path) -> list[tuple[str, str]]:
    """Return (`TestX::test_y[case]`, status) of every test case, in the file's order.

    Raises OSError and ValueError as `read_junit` does. Status as of a TestResult.
    """
    cases = _parse(path).iter("testcase")
    return [(_id_of(case), _status(case)[0]) for case in cases]


def _id_of(case: ET.Element) -> str:
    """Return `TestX::test_y[case]`."""
    group = (case.get("classname") or "").rpartition(".")[2]
    return one_line(f"{group}::{case.get('name') or ''}")


def _parse(path: Path) -> ET.Element:
    builder = ET.TreeBuilder()
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise ValueError(f"{path} is not JUnit XML: it has a document type")

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    with path.open("rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"{path} has more than {MAX_BYTES >> 20} MiB")
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise ValueError(f"{path} is not JUnit XML: {error}") from None
    return builder.close()


def _properties(element: ET.Element | None) -> list[tuple[str, str]]:
    """Return the properties of a suite or a test, in their order."""
    items = [] if element is None else element.findall("property")
    return [(item.get("name") or "", item.get("value") or "") for item in items]


def _tests_of(case: ET.Element) -> Iterable[TestResult]:
    """Yield a test case's result, nothing where it is no reference test."""
    properties = _properties(case.find("properties"))
    records = tuple(
        check_record(json.loads(value))
        for name, value in properties
        if name == "comparison"
    )
    known = dict(properties)
    definition = known.get("definition") or (records and records[0]["definition"])
    if not definition:
        return
    status, message = _status(case)
    yield TestResult(
        (case.get("name") or "").partition("[")[0],
        str(definition),
        known.get("sha256", ""),
        known.get("source"),
        status,
        message,
        _seconds(case.get("time")),
        records,
    )


def _status(case: ET.Element) -> tuple[str, str]:
    """Return how a test case ended, and the first line that says why."""
    status, message = "passed", ""
    for tag, meaning in (
        ("skipped", "skipped"),
        ("failure", "failed"),
        ("error", "error"),
    ):
        element = case.find(tag)
        if element is not None:
            status, message = meaning, _reason(element)
    return status, message


def check_record(record: Any) -> dict[str, Any]:
    """Return a comparison as a test recorded it; ValueError or TypeError if none."""
    if not isinstance(record, dict):
        raise TypeError("a comparison is no object")
    for name in _TEXTS:
        if not isinstance(record.get(name), str):
            raise TypeError(f"a comparison has no {name}")
    if record.get("verdict") not in VERDICTS:
        raise ValueError("a comparison has no verdict")
    for name in ("nmse", "max_abs", "hit_ratio"):
        value = record.get(name, 0.0)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"the {name} of a comparison is no number")
    if record.get("where") is not None:
        read_error_map(record["where"])
    return record


def _reason(element: ET.Element) -> str:
    """Return the first line that says something: of a skip, the skip's reason."""
    text = f"{element.get('message') or ''}\n{element.text or ''}"
    lines = (line.strip() for line in text.splitlines())
    return one_line(next(filter(None, lines), ""), 200)


def _seconds(text: str | None) -> float:
    seconds = float(text or 0.0)
    return seconds if math.isfinite(seconds) else 0.0
