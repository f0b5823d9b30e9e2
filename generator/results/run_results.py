"""Read what a run of the reference tests left; the file may be foreign or hostile."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generator.problems.messages import one_line
from generator.results.error_maps import read_error_map

FORMAT = 1
MAX_BYTES = 256 * 1024 * 1024
VERDICTS = ("PASSED", "FAILED", "ERROR")
_STATUSES = ("passed", "failed", "error", "skipped")
_OF_TEST = ("test", "definition", "sha256", "status", "message", "skip_kind")
_OF_COMPARISON = ("definition", "source", "case", "output")
_FACTS = "device cpu gpu sm memory_gib driver python torch cuda flashinfer sglang"
# an integer of more is read as a float, which may be infinite
_DIGITS = 18


@dataclass(frozen=True)
class TestResult:
    """Hold one test: whom it is about, how it ended, and what it compared.

    `test` is its id, `TestX::test_y[case]`; `source` is what it compares with, None for
    a test that compares with nothing; `status` is passed, failed, error or skipped, and
    `message` says why; `skip_kind` is a skip's kind in a word, empty where none was
    recorded.
    """

    test: str
    definition: str
    sha256: str
    source: str | None
    status: str
    message: str
    seconds: float
    comparisons: tuple[Mapping[str, Any], ...]
    skip_kind: str = ""

    @property
    def function(self) -> str:
        """Return the name of the test function."""
        return self.test.partition("[")[0].rpartition("::")[2]


@dataclass(frozen=True)
class Results:
    """Hold one run: its date (2026-11-21, or empty), its machine, its reference tests."""

    date: str
    machine: Mapping[str, str]
    tests: tuple[TestResult, ...] = field(default=())


def read_results(path: Path) -> Results:
    """Return the results in a file: JSON Lines, or JUnit XML where its suffix is .xml.

    Raises OSError where it can't be read, ValueError, one line, where it is neither.
    """
    with path.open("rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"{path} has more than {MAX_BYTES >> 20} MiB")
    if path.suffix != ".xml":
        return parse_results(data, str(path))
    from generator.results.junit import parse_junit

    return parse_junit(data, str(path))


def parse_results(data: bytes, name: str) -> Results:
    """Return the results in what `pytest --results` wrote; ValueError names the file.

    A last line that does not end is what a killed run left of one; it is passed over.
    """
    first, *others = data.split(b"\n")[:-1] or [b""]
    try:
        head = json_value(first)
        is_ours = head["format"] == FORMAT and isinstance(head["machine"], dict)
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        is_ours = False
    if not is_ours:
        raise ValueError(f"{name} is not a results file of pytest --results")
    return results_of(name, head.get("date"), head["machine"], map(json_value, others))


def json_value(text: str | bytes) -> Any:
    """Return a JSON value; NaN is one, and no integer in it is too large to be a float."""
    return json.loads(text, parse_int=_integer)


def _integer(digits: str) -> float:
    return int(digits) if len(digits) <= _DIGITS else float(digits)


def results_of(
    name: str, date: Any, machine: Mapping[str, Any], tests: Iterable[Any]
) -> Results:
    """Return results whose fields are checked; ValueError names the file."""
    try:
        found = tuple(map(_test, tests))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        text = one_line(str(error), 120)
        raise ValueError(f"{name} has a damaged test result: {text}") from None
    if not found:
        raise ValueError(
            f"{name} holds no reference test: make it by "
            f"pytest tests/references --results {Path(name).stem}.jsonl"
        )
    day = re.match(r"\d{4}-\d\d-\d\d", str(date), re.ASCII)
    facts = {
        fact: one_line(str(machine[fact]), 80)
        for fact in _FACTS.split()
        if fact in machine
    }
    return Results(day.group() if day else "", facts, found)


def _test(value: Any) -> TestResult:
    if not isinstance(value, dict):
        raise TypeError("a test is no object")
    texts = {name: _text(value, name, "a test") for name in _OF_TEST}
    source = None if value.get("source") is None else _text(value, "source", "a test")
    if not texts["definition"]:
        raise ValueError("a test has no definition")
    if texts["status"] not in _STATUSES:
        raise ValueError("a test has no status")
    seconds, comparisons = _number(value, "seconds", "a test"), value["comparisons"]
    if not isinstance(comparisons, list):
        raise TypeError("the comparisons of a test are no list")
    return TestResult(
        one_line(texts["test"]),
        texts["definition"],
        texts["sha256"],
        source,
        texts["status"],
        one_line(texts["message"], 200),
        seconds if math.isfinite(seconds) else 0.0,
        tuple(_comparison(record) for record in comparisons),
        one_line(texts["skip_kind"], 40),
    )


def _comparison(record: Any) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise TypeError("a comparison is no object")
    for name in _OF_COMPARISON:
        _text(record, name, "a comparison")
    if record.get("verdict") not in VERDICTS:
        raise ValueError("a comparison has no verdict")
    for name in ("nmse", "max_abs", "hit_ratio"):
        if name in record:
            record[name] = _number(record, name, "a comparison")
    if record.get("where") is not None:
        read_error_map(record["where"])
    return record


def _text(value: Mapping[str, Any], name: str, whose: str) -> str:
    found = value.get(name)
    if not isinstance(found, str):
        raise TypeError(f"{whose} has no {name}")
    return found


def _number(value: Mapping[str, Any], name: str, whose: str) -> float:
    found = value.get(name)
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise TypeError(f"the {name} of {whose} is no number")
    return float(found)
