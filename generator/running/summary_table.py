"""The end of a test run as a table: what was compared with what, and what was not.

A row is an op_type's tests of one source. It counts tests: a comparison with a live
kernel, a recording or the oracle is one case of one definition. Relations, agreement
of ground truths, and tests that compare nothing have a row each.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from generator.problems.messages import plural, some
from kernel_judge.obstacle import Kind
from kernel_judge.source_names import is_of_itself, is_pair

WIDTH = 100
_NAME_MOST = 30
ORACLE = "oracle"
_OWN, _RELATIONS, _PAIRS = "its own tests", "metamorphic", "ground truths agree"
# tests whose source is not a property of theirs, where they compared nothing
_OF_FUNCTION = {"test_metamorphic": _RELATIONS, "test_ground_truths_agree": _PAIRS}
_COLUMNS = ("definitions", "cases", "passed", "failed", "skipped")


@dataclass
class SummaryRow:
    """The counts of one op_type and source.

    `definitions` are all that had a test, `compared` those of which a case was;
    `nmse` is the worst over all outputs but the LSE, whose worst error is `lse`.
    """

    definitions: set[str] = field(default_factory=set)
    compared: set[str] = field(default_factory=set)
    cases: set[tuple[str, str]] = field(default_factory=set)
    passed: int = 0
    failed: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    nmse: float | None = None
    lse: float | None = None

    @property
    def skipped(self) -> int:
        """Return how many tests were skipped."""
        return self.reasons.total()

    def add_comparison(self, record: dict[str, Any]) -> None:
        """Take a comparison's figures; NaN is worse than any number."""
        name = record["definition"]
        self.compared.add(name)
        self.cases.add((name, record["case"]))
        if record["output"] == "lse":
            self.lse = _worse(self.lse, record.get("max_abs"))
        else:
            self.nmse = _worse(self.nmse, record.get("nmse"))

    def merge(self, other: SummaryRow) -> None:
        """Add the counts of a row in which nothing was compared."""
        self.definitions |= other.definitions
        self.failed += other.failed
        self.reasons += other.reasons


def _worse(known: float | None, value: Any) -> float | None:
    if not isinstance(value, (int, float)):
        return known
    if known is None or math.isnan(value):
        return float(value)
    return known if math.isnan(known) else max(known, float(value))


class SummaryTable:
    """Collect the tests of a run; give its table."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], SummaryRow] = {}
        self._without_oracle: dict[str, str] = {}

    @property
    def compared(self) -> set[str]:
        """Return the definitions that were compared with anything but themselves."""
        return {
            name
            for (_, source), row in self._rows.items()
            if source not in (_OWN, _RELATIONS)
            for name in row.compared
        }

    @property
    def unproven(self) -> dict[str, str]:
        """Return why a definition has no oracle, of those compared with nothing."""
        compared = self.compared
        return {n: why for n, why in self._without_oracle.items() if n not in compared}

    def add(self, test: Mapping[str, Any]) -> None:
        """Take a finished test, as a line of the results has it."""
        if test["source"] == ORACLE and test["skip_kind"] == Kind.UNRESOLVED:
            why = _reason(test, ORACLE).removeprefix("UNRESOLVED: ")
            self._without_oracle[test["definition"]] = why
        by_source: dict[str, list[dict[str, Any]]] = {}
        for record in test["comparisons"]:
            by_source.setdefault(_kind_of(record["source"]), []).append(record)
        failing = [
            source
            for source, of_source in by_source.items()
            if any(record["verdict"] != "PASSED" for record in of_source)
        ]
        for source in list(by_source) or [test["source"] or _of_function(test)]:
            row = self._rows.setdefault((test["op_type"], source), SummaryRow())
            row.definitions.add(test["definition"])
            for record in by_source.get(source, ()):
                row.add_comparison(record)
            if test["status"] == "skipped":
                row.reasons[_reason(test, source)] += 1
            elif test["status"] != "passed" and (source in failing or not failing):
                # an error is nobody's comparison: it counts for all of them
                row.failed += 1
            else:
                row.passed += 1

    def rows(self) -> list[tuple[str, str, SummaryRow]]:
        """Return (op_type, source, row), sorted.

        Backends of one provider of which none was compared are one row: `flashinfer`.
        """
        found: dict[tuple[str, str], SummaryRow] = {}
        for (op_type, source), row in self._rows.items():
            nothing = not row.compared and not row.passed
            key = (op_type, source.partition("/")[0] if nothing else source)
            found.setdefault(key, SummaryRow())
            if nothing:
                found[key].merge(row)
            else:
                merged, found[key] = found[key], row
                row.merge(merged)
        return [(*key, found[key]) for key in sorted(found, key=_order)]

    def lines(self) -> Iterator[tuple[str, bool]]:
        """Yield the table's lines, each with whether it is of a failure."""
        rows = self.rows()
        if not rows:
            return
        width = max(len(source) for _, source, _ in rows)
        width = max(min(width, _NAME_MOST), len("what was compared") - 2)
        first = f"{'what was compared':<{width + 2}}  {' '.join(_COLUMNS)}  "
        yield first + _short("worst error; why skipped", WIDTH - len(first)), False
        before = None
        for op_type, source, row in rows:
            if op_type != before:
                yield op_type, False
                before = op_type
            yield _line(source, row, width), bool(row.failed)
        total = {name for _, _, row in rows for name in row.definitions}
        yield f"{len(self.compared)} of {len(total)} definitions were compared", False
        unproven = [f"{name} ({why})" for name, why in sorted(self.unproven.items())]
        if unproven:
            what = plural(len(unproven), "definition")
            yield f"NOTHING COMPARED with {what}: {some(unproven, 5)}", True


def _line(source: str, row: SummaryRow, width: int) -> str:
    definitions = f"{len(row.compared)}/{len(row.definitions)}"
    if source == _OWN:
        definitions = str(len(row.definitions))
    values = [definitions, len(row.cases), row.passed, row.failed, row.skipped]
    cells = (f"{v or '':>{len(c)}}" for c, v in zip(_COLUMNS, values, strict=True))
    start = f"  {_short(source, width):<{width}}  {' '.join(cells)}  "
    return (start + _short(_note(row), WIDTH - len(start))).rstrip()


def _note(row: SummaryRow) -> str:
    figures = [f"NMSE {row.nmse:.1e}"] if row.nmse is not None else []
    figures += [f"LSE {row.lse:.1e}"] if row.lse is not None else []
    notes = ["FAILED"] if row.failed else []
    notes += [", ".join(figures)] if figures else []
    if row.reasons:
        others = len(row.reasons) - 1
        # what is cut is the reason, never the count of others
        more = f"(+{others}) " if others else ""
        notes.append(more + row.reasons.most_common(1)[0][0])
    return "; ".join(notes)


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def _kind_of(source: str) -> str:
    """Return the source of a row: relations are one row, and so are pairs."""
    if is_of_itself(source):
        return _RELATIONS
    return _PAIRS if is_pair(source) else source


def _of_function(test: Mapping[str, Any]) -> str:
    function = test["test"].rpartition("::")[2].partition("[")[0]
    return _OF_FUNCTION.get(function, _OWN)


def _reason(test: Mapping[str, Any], source: str) -> str:
    """Return why a test was skipped, without the provider that its row names."""
    text = " ".join(test["message"].split())
    return text.removeprefix(f"{source.partition('/')[0]}: ")


def _order(key: tuple[str, str]) -> tuple[str, bool, str]:
    """Return what to sort by: the tests that compare nothing are last."""
    op_type, source = key
    return op_type, source == _OWN, source
