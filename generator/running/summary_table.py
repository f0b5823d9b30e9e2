"""The end of a test run as a table: what was compared with what, and what was not.

A row is an op_type's tests of one source. It counts tests: a comparison with a live
kernel, a recording or the oracle is one case of one definition. Relations, agreement
of ground truths, and tests that compare nothing have a row each.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from generator.problems.messages import plural, some
from kernel_judge.obstacle import Kind
from kernel_judge.source_names import is_of_itself, is_pair

WIDTH = 100
"""Of a line on a terminal; elsewhere a reason is whole."""

_NAME_MOST = 30
# op_types of which a source compared nothing, for one reason: these share a line
_SHARED = 4
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

    @property
    def only_reason(self) -> str:
        """Return the one reason for which all was skipped, else nothing."""
        is_one = len(self.reasons) == 1 and not (self.passed or self.failed)
        return next(iter(self.reasons)) if is_one else ""

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
    """The tests of a run, and their table."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], SummaryRow] = {}
        self._without_oracle: dict[str, str] = {}
        # why the oracle was not asked of a definition, the first reason; or that it failed
        self._skipped: dict[str, str] = {}

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
        if test["source"] == ORACLE and test["status"] == "skipped":
            self._skipped.setdefault(test["definition"], _reason(test, ORACLE))
        if test["status"] in ("failed", "error"):
            self._skipped[test["definition"]] = "failed"
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
        rows: dict[tuple[str, str], SummaryRow] = {}
        for (op_type, source), row in self._rows.items():
            nothing = not row.compared and not row.passed
            key = (op_type, source.partition("/")[0] if nothing else source)
            rows.setdefault(key, SummaryRow())
            if nothing:
                rows[key].merge(row)
            else:
                merged, rows[key] = rows[key], row
                row.merge(merged)
        return [(*key, rows[key]) for key in sorted(rows, key=_order)]

    def lines(self, width: int | None = WIDTH) -> Iterator[tuple[str, bool]]:
        """Yield the table's lines, each with whether it is of a failure.

        `width` is of the lines that can be cut, None for no limit.
        """
        rows = self.rows()
        if not rows:
            return
        shared = _shared(rows)
        names = max(len(source) for _, source, _ in rows)
        names = max(min(names, _NAME_MOST), len("what was compared") - 2)
        first = f"{'what was compared':<{names + 2}}  {' '.join(_COLUMNS)}  "
        yield first + "worst error; why skipped", False
        before = None
        for op_type, source, row in rows:
            if (source, row.only_reason) in shared:
                continue
            if op_type != before:
                yield op_type, False
                before = op_type
            yield _line(source, row, names, width), bool(row.failed)
        for (source, reason), count in shared.items():
            yield _short(f"{source}: {reason}, of {count} op_types", width), False
        compared = self.compared
        total = {name for _, _, row in rows for name in row.definitions}
        yield f"{len(compared)} of {len(total)} definitions were compared", False
        unproven = self.unproven
        if skipped := sorted(total - compared - unproven.keys()):
            reasons = (f"{n} ({self._skipped.get(n, 'not asked')})" for n in skipped)
            yield f"not compared: {some([*reasons], 5)}", False
        lines = [f"{name} ({why})" for name, why in sorted(unproven.items())]
        if lines:
            what = plural(len(lines), "definition")
            yield f"NOTHING COMPARED with {what}: {some(lines, 5)}", True


def _shared(rows: Sequence[tuple[str, str, SummaryRow]]) -> dict[tuple[str, str], int]:
    """Return source and reason of rows that say the same of several op_types: how many."""
    reasons = ((source, row.only_reason) for _, source, row in rows)
    counts = Counter((source, reason) for source, reason in reasons if reason)
    return {key: count for key, count in counts.items() if count >= _SHARED}


def _line(source: str, row: SummaryRow, names: int, width: int | None) -> str:
    definitions = f"{len(row.compared)}/{len(row.definitions)}"
    if source == _OWN:
        definitions = str(len(row.definitions))
    values = [definitions, len(row.cases), row.passed, row.failed, row.skipped]
    cells = (f"{v or '':>{len(c)}}" for c, v in zip(_COLUMNS, values, strict=True))
    start = f"  {_short(source, names):<{names}}  {' '.join(cells)}  "
    return _short((start + _note(row)).rstrip(), width)


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


def _short(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else text[: width - 1] + "…"


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
