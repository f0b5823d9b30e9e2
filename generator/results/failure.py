"""The JSON file of a failure, of a solution's case or a reference's test; the latter run again.

It may come from anybody: what a replay takes from it is checked here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from generator.dataset.failure_file import FORMAT
from generator.dataset.file_reading import read_bytes
from generator.problems import Failure
from generator.problems.messages import one_line
from generator.reports.report import (
    Conclusion,
    Quoted,
    Report,
    Row,
    Section,
    Status,
    Table,
)
from generator.results.run_results import TestResult

OF_SOLUTION, OF_TEST = "solution", "test"
"""The kinds of failures: of `trace-dataset evaluate`, and of the reference tests."""

_MOST_BYTES = 64 << 20
_TEST = re.compile(r"\w{1,200}::test_\w{1,100}(\[[\w.:/@+=, -]{1,300}\])?")
_DEVICES = ("cpu", "cuda")
_TEXTS = ("definition", "case", "verdict")


def read_failure(path: Path) -> dict[str, Any]:
    """Return the value of a failure's JSON file. Raises Failure for another file."""
    try:
        whole = path.absolute()  # of `.` the name is empty
        value = json.loads(read_bytes(whole.parent, whole.name, _MOST_BYTES))
    except OSError as error:
        raise Failure(f"{path}: {error.strerror or error}.") from None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise Failure(f"{path}: it is no failure that --keep-failures wrote.")
    _require(path, value, dict.fromkeys(_TEXTS, str))
    if value.get("kind") == OF_TEST:
        _require_test(path, value)
    else:
        _require_choice(path, value, "kind", (OF_SOLUTION, OF_TEST))
        _require_choice(path, value, "workloads", ("dataset", "cases", "both"))
        _require_number(path, value, "seed", 2**62)
        _require_number(path, value, "fuzz", 10_000)
        _require(path, value, {"path": str, "solution": dict})
    _require_choice(path, value, "device", _DEVICES)
    return value


_STATUSES = {"passed": Status.PASSED, "skipped": Status.OPEN}


def rerun_report(result: TestResult, was: str) -> Report:
    """Return the report of a test that was run again; `was` is the verdict before."""
    status = _STATUSES.get(result.status, Status.FAILED)
    findings = [
        f"{record['output']} against {record['source']}: {finding}"
        for record in result.comparisons
        if record["verdict"] != "PASSED"
        for finding in record.get("findings", ())
    ]
    reasons = [one_line(text, 600) for text in findings or [result.message] if text]
    cells = (Quoted(result.test), result.status, "; ".join(reasons))
    columns = ("test", "result", "reason")
    summary = f"{one_line(result.test)}: {result.status}, was {was}"
    return Report(
        title="A test that was run again",
        command="trace-dataset replay --json",
        conclusion=Conclusion(status, summary),
        payload={
            "test": result.test,
            "definition": result.definition,
            "status": result.status,
            "was": was,
            "message": result.message,
            "comparisons": list(result.comparisons),
        },
        sections=[Section("", [Table([Row(cells, status)], columns, words=columns)])],
        is_said=True,
    )


def _require_test(path: Path, value: Mapping[str, Any]) -> None:
    test, tolerance = value.get("test"), value.get("tolerance")
    if not isinstance(test, str) or not _TEST.fullmatch(test):
        raise Failure(f"{path} /test: it is no test, TestX::test_y[case].")
    if value.get("seed") is not None:
        _require_number(path, value, "seed", 2**62)
    if tolerance is not None and not (
        isinstance(tolerance, float) and 0.0 <= tolerance < math.inf
    ):
        raise Failure(f"{path} /tolerance: it is no number from 0 on.")


def _require(
    path: Path, value: Mapping[str, Any], kinds: Mapping[str, type[Any]]
) -> None:
    for name, kind in kinds.items():
        if not isinstance(value.get(name), kind):
            raise Failure(f"{path} /{name}: it is missing, or of another kind.")


def _require_choice(
    path: Path, value: Mapping[str, Any], name: str, words: Sequence[str]
) -> None:
    if value.get(name) not in words:
        raise Failure(f"{path} /{name}: it is none of {', '.join(words)}.")


def _require_number(
    path: Path, value: Mapping[str, Any], name: str, highest: int
) -> None:
    one = value.get(name)
    if not isinstance(one, int) or isinstance(one, bool) or not 0 <= one <= highest:
        raise Failure(f"{path} /{name}: it is no number from 0 to {highest}.")
