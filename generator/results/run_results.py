"""Read what a run of the reference tests left, and sum it up as evidence.

The file may be foreign or hostile. JSON Lines of `pytest --results` are the format.
JUnit XML, which earlier versions wrote, becomes the same values before anything else
reads it.
"""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.dataset.libraries import libraries
from generator.dataset.schema import check
from generator.problems import Failure
from generator.problems.messages import one_line, quote
from generator.results.evidence import SKIPPED, DefinitionEvidence, Run, SourceEvidence
from kernel_judge.comparison.error_map import LARGEST, NOT_FINITE, SIDE
from kernel_judge.obstacle import SKIP_KIND
from kernel_judge.source_names import is_of_itself

FORMAT = 1
MAX_BYTES = 256 * 1024 * 1024
VERDICTS = ("PASSED", "FAILED", "ERROR")
_FACTS = [
    "device",
    "cpu",
    "gpu",
    "sm",
    "hip",
    "memory_gib",
    "driver",
    "python",
    "torch",
    "cuda",
]
_JUNIT_STATUSES = {"error": "error", "failure": "failed", "skipped": "skipped"}
# an integer of more is read as a float, which may be infinite
_DIGITS = 18
# of a comparison: what is no figure of its policy
_KNOWN = (
    "definition case size workload source output rows_left_out not_given rewritten not_independent verdict "
    "findings elements mismatched max_abs mean_abs max_rel mean_rel nmse cosine norm_ratio "
    "hit_ratio expected_rms worst"
)

Record = Mapping[str, Any]


@dataclass(frozen=True)
class ErrorMap:
    """A histogram and a grid of |error| / allowed, as `testing.error_map` makes.

    A cell of the grid is the largest ratio of its elements, NOT_FINITE, or None where
    it has none.
    """

    rows: int
    columns: int
    histogram: tuple[int, ...]
    grid: tuple[tuple[float | None, ...], ...]

    @property
    def ratios(self) -> dict[tuple[int, int], float]:
        """Return row and column → largest ratio: infinite where one is not finite."""
        return {
            (i, j): math.inf if value == NOT_FINITE else value
            for i, row in enumerate(self.grid)
            for j, value in enumerate(row)
            if value is not None
        }


def read_error_map(value: Mapping[str, Any]) -> ErrorMap:
    """Return the map of a record that has the schema's form.

    Raises ValueError where its parts don't fit each other.
    """
    rows, columns, grid = value["rows"], value["columns"], value["grid"]
    if max(value["histogram"]) > rows * columns:
        raise ValueError("the histogram of a comparison counts more than its elements")
    high, wide = min(SIDE, rows), min(SIDE, columns)
    if len(grid) != high or any(len(row) != wide for row in grid):
        raise ValueError(f"the grid of a comparison is not {high} x {wide} ratios")
    cells = (v for row in grid for v in row if v is not None)
    # comparisons with NaN are False
    if not all(v == NOT_FINITE or 0 <= v <= LARGEST for v in cells):
        raise ValueError("the grid of a comparison has a cell that is not a ratio")
    return ErrorMap(rows, columns, tuple(value["histogram"]), tuple(map(tuple, grid)))


@dataclass(frozen=True)
class TestResult:
    """One test: whom it is about, how it ended, and what it compared.

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
    comparisons: tuple[Record, ...]
    skip_kind: str = ""

    @property
    def function(self) -> str:
        """Return the name of the test function."""
        return self.test.partition("[")[0].rpartition("::")[2]

    @property
    def is_bad(self) -> bool:
        """Return whether the test did not come out well."""
        return self.status in ("failed", "error")

    @property
    def is_broken(self) -> bool:
        """Return whether it is bad, though no comparison says why."""
        return self.is_bad and all(r["verdict"] == "PASSED" for r in self.comparisons)


@dataclass(frozen=True)
class Results:
    """One run: its date (2026-11-21, or empty), its machine, its reference tests."""

    date: str
    machine: Mapping[str, str]
    tests: tuple[TestResult, ...] = ()


def read_all(paths: Iterable[Path]) -> list[Results]:
    """Return the results of files, and of each *.jsonl and *.xml in folders.

    Raises OSError and Failure as `read_results`, and Failure for a folder with none.
    """
    files: list[Path] = []
    for path in paths:
        inside = [path]
        if path.is_dir():
            inside = sorted({*path.glob("*.jsonl"), *path.glob("*.xml")})
        if not inside:
            raise Failure(f"There is no *.jsonl and no *.xml in {path}")
        files += inside
    return [read_results(file) for file in files]


def read_results(path: Path) -> Results:
    """Return the results in a file: JSON Lines, or JUnit XML where its suffix is .xml.

    Raises OSError where it can't be read, Failure where it is neither.
    """
    with path.open("rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise Failure(f"{path} has more than {MAX_BYTES >> 20} MiB")
    parse = _parse_junit if path.suffix == ".xml" else parse_results
    return parse(data, str(path))


def parse_results(data: bytes, name: str) -> Results:
    """Return the results in what `pytest --results` wrote; a Failure names the file.

    A last line that does not end is what a killed run left of one; it is passed over.
    """
    first, *others = data.split(b"\n")[:-1] or [b""]
    try:
        head = _json_value(first)
        is_ours = head["format"] == FORMAT and isinstance(head["machine"], dict)
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        is_ours = False
    if not is_ours:
        raise Failure(f"{name} is not a results file of pytest --results")
    return _results(name, head.get("date"), head["machine"], map(_json_value, others))


class _WithoutDoctype(ET.TreeBuilder):
    """A builder of a document's tree that refuses document types: entities can be bombs."""

    def doctype(self, *_: object) -> None:
        raise ValueError("it has a document type")


def _parse_junit(data: bytes, name: str) -> Results:
    """Return the reference tests of a JUnit file; a Failure names it."""
    try:
        root = ET.fromstring(data, parser=ET.XMLParser(target=_WithoutDoctype()))
    except (ET.ParseError, LookupError, ValueError) as error:
        raise Failure(f"{name} is not JUnit XML: {error}") from None
    if root.tag not in ("testsuites", "testsuite"):
        raise Failure(f"{name} is not JUnit XML: its root is {quote(root.tag)}")
    suite = next(root.iter("testsuite"), root)
    machine = dict(_properties(suite))
    return _results(name, suite.get("timestamp"), machine, _junit_tests(root))


def _properties(element: ET.Element) -> list[tuple[str, str]]:
    """Return the properties of a suite or a test, in their order."""
    elements = element.iterfind("properties/property")
    return [(item.get("name") or "", item.get("value") or "") for item in elements]


def _junit_tests(root: ET.Element) -> Iterator[dict[str, Any]]:
    """Yield each reference test as a line of the results has it."""
    for case in root.iter("testcase"):
        properties = _properties(case)
        known = dict(properties)
        if not known.get("definition"):
            continue
        group = (case.get("classname") or "").rpartition(".")[2]
        ended = [e for tag in _JUNIT_STATUSES if (e := case.find(tag)) is not None]
        messages = [f"{e.get('message') or ''}\n{e.text or ''}" for e in ended[:1]]
        yield {
            "test": f"{group}::{case.get('name') or ''}",
            "definition": known["definition"],
            "sha256": known.get("sha256", ""),
            "source": known.get("source"),
            "status": _JUNIT_STATUSES[ended[0].tag] if ended else "passed",
            # the first line that says why
            "message": "".join(messages).strip().split("\n")[0].strip(),
            "seconds": float(case.get("time") or 0.0),
            "skip_kind": known.get(SKIP_KIND, ""),
            "comparisons": [_json_value(v) for n, v in properties if n == "comparison"],
        }


def _json_value(text: str | bytes) -> Any:
    """Return a JSON value; NaN is one, and no integer in it is too large to be a float."""
    return json.loads(
        text, parse_int=lambda n: int(n) if len(n) <= _DIGITS else float(n)
    )


def _results(
    name: str, date: Any, machine: Mapping[str, Any], tests: Iterable[Any]
) -> Results:
    """Return results whose fields are checked; a Failure names the file."""
    try:
        results = tuple(map(_test, tests))
    except (TypeError, ValueError, RecursionError) as error:
        text = one_line(str(error), 120)
        raise Failure(f"{name} has a damaged test result: {text}") from None
    if not results:
        raise Failure(
            f"{name} holds no reference test: make it by "
            f"pytest tests/references --results {Path(name).stem}.jsonl"
        )
    day = re.match(r"\d{4}-\d\d-\d\d", str(date), re.ASCII)
    named = ((fact, machine.get(fact)) for fact in (*_FACTS, *libraries()))
    facts = {fact: one_line(str(v), 80) for fact, v in named if v is not None}
    return Results(day.group() if day else "", facts, results)


def _test(value: Any) -> TestResult:
    """Return one line's result. Raises ValueError or TypeError where it is none."""
    if wrong := check(value, "result", ""):
        raise ValueError(wrong[0].message)
    for record in value["comparisons"]:
        if record.get("where") is not None:
            read_error_map(record["where"])
    seconds = float(value["seconds"])
    return TestResult(
        one_line(value["test"]),
        value["definition"],
        value["sha256"],
        value.get("source"),
        value["status"],
        one_line(value["message"], 200),
        seconds if math.isfinite(seconds) else 0.0,
        tuple(value["comparisons"]),
        one_line(value["skip_kind"], 40),
    )


def runs_of(results: Iterable[Results]) -> list[Run]:
    """Return the runs of results; those of one day and machine are one run."""
    runs: dict[Any, Run] = {}
    tests: dict[Any, dict[str, list[TestResult]]] = defaultdict(dict)
    for result in results:
        run = Run(result.date, result.machine, {})
        runs.setdefault(run.key, run)
        for test in result.tests:
            tests[run.key].setdefault(test.definition, []).append(test)
    return [
        Run(
            runs[key].date,
            runs[key].machine,
            {name: _entry(of) for name, of in sorted(tests[key].items())},
        )
        for key in sorted(runs)
    ]


def _entry(tests: Sequence[TestResult]) -> DefinitionEvidence:
    """Return the entry of one definition; of two texts of it, the later one's."""
    sha256 = tests[-1].sha256
    by_source: dict[str, list[TestResult]] = defaultdict(list)
    failed = set()
    for test in tests:
        if test.sha256 != sha256:
            continue
        # a reference held against itself agrees with nobody: a test as any other
        sources = {record["source"] for record in test.comparisons}
        compared = {source for source in sources if not is_of_itself(source)}
        for source in compared or {test.source}:
            if source is not None:
                by_source[source].append(test)
            elif test.is_bad:
                failed.add(test.function)
    verdicts = {
        source: _verdict(source, of) for source, of in sorted(by_source.items())
    }
    return DefinitionEvidence(sha256, verdicts, tuple(sorted(failed)))


def _verdict(source: str, tests: Sequence[TestResult]) -> SourceEvidence:
    """Return the worst of what tests say of one source."""
    records = [r for t in tests for r in t.comparisons if r["source"] == source]
    skips = [test for test in tests if test.status == "skipped"]
    broken = [test for test in tests if test.is_broken]
    cases = len({record["case"] for record in records})
    counts = (cases, len(skips), round(sum(test.seconds for test in tests), 1))
    if broken:
        return SourceEvidence("ERROR", *counts, reason=broken[0].message)
    if not records and skips:
        return SourceEvidence(SKIPPED, *counts, skips[0].message, skips[0].skip_kind)
    if not records:
        return SourceEvidence("ERROR", *counts, "passed without a comparison")
    lse = [record for record in records if record["output"] == "lse"]
    others = [record for record in records if record["output"] != "lse"]
    hit_ratio = _range("hit_ratio", records)
    names = {name for record in records for name in record} - {*_KNOWN.split()}
    return SourceEvidence(
        max((record["verdict"] for record in records), key=VERDICTS.index),
        *counts,
        nmse=_greatest("nmse", others),
        lse=_greatest("max_abs", lse),
        hit_ratio=hit_ratio[0] if hit_ratio else None,
        figures={
            name: bounds for name in sorted(names) if (bounds := _range(name, records))
        },
        not_independent=_names("not_independent", records),
        not_given=_names("not_given", records),
        rewritten=_names("rewritten", records),
        compared=_compared(records),
    )


def _compared(records: Iterable[Record]) -> dict[str, tuple[str, ...]]:
    """Return size → the cases of comparisons, sorted; of workloads their identities."""
    compared: dict[str, set[str]] = defaultdict(set)
    for record in records:
        # results of earlier versions have no sizes
        if size := record.get("size"):
            compared[size].add(record.get("workload") or record["case"])
    return {size: tuple(sorted(compared[size])) for size in sorted(compared)}


def _names(field: str, records: Iterable[Record]) -> tuple[str, ...]:
    """Return the names that any of the records lists in a field, sorted."""
    lists = (record.get(field) for record in records)
    return tuple(
        sorted({str(n) for some in lists if isinstance(some, list) for n in some})
    )


def _greatest(name: str, records: Iterable[Record]) -> float | None:
    bounds = _range(name, records)
    return bounds[1] if bounds else None


def _range(name: str, records: Iterable[Record]) -> tuple[float, float] | None:
    """Return the least and the greatest of a figure; NaN is both where there is one.

    None where no comparison has the figure; true and false are none.
    """
    recorded = (record.get(name) for record in records)
    values = [float(v) for v in recorded if v is not None and type(v) in (int, float)]
    if not values:
        return None
    if any(map(math.isnan, values)):
        return math.nan, math.nan
    return float(f"{min(values):.3g}"), float(f"{max(values):.3g}")
