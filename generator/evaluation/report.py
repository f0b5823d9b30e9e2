"""The verdicts on solutions as a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from generator.evaluation.conditions.condition import BROKEN, HOLDS
from generator.evaluation.verdict import ORDER, PASSED, SKIPPED, SolutionVerdict
from generator.problems.messages import plural
from generator.reports.report import (
    Conclusion,
    Quoted,
    Report,
    Row,
    Section,
    Status,
    Table,
)

_COLUMNS = ("solution", "definition", "verdict", "cases", "seconds", "reason")
_TIMES = (
    *("solution", "case", "ms", "spread", "host", "reference", "production"),
    *("speedup", "of light", "of measured", ""),
)
_MEMORY = ("solution", "case", "MiB of a call", "of whom", "")
_CONDITIONS = ("solution", "as", "condition", "reason")
_OF_CONDITIONS = {HOLDS: Status.PASSED, BROKEN: Status.FAILED}
_STATUSES = {PASSED: Status.PASSED, SKIPPED: Status.OPEN}


def evaluation_report(verdicts: Sequence[SolutionVerdict]) -> Report:
    """Return the report of an evaluation; it failed where a solution is refused."""
    counts = Counter(verdict.verdict for verdict in verdicts)
    shown = (name for name in ORDER if counts[name])
    summary = f"{plural(len(verdicts), 'solution')}: " + ", ".join(
        f"{counts[name]} {name}" for name in shown
    )
    failed = any(not verdict.is_fine for verdict in verdicts)
    tables = [
        Table(
            [_row(verdict) for verdict in verdicts],
            _COLUMNS,
            words=("solution", "definition", "verdict", "reason"),
        )
    ]
    times = [row for verdict in verdicts for row in _times(verdict)]
    if times:
        tables.append(Table(times, _TIMES, words=("solution", "case"), keys=2))
    memory = [row for verdict in verdicts for row in _memory(verdict)]
    if memory:
        tables.append(Table(memory, _MEMORY, words=(*_MEMORY[:2], "of whom", "")))
    under = [row for verdict in verdicts for row in _conditions(verdict)]
    if under:
        tables.append(Table(under, _CONDITIONS, words=_CONDITIONS, keys=2))
    notes = dict.fromkeys((v.definition, note) for v in verdicts for note in v.notes)
    tables.append(Table([Row((Quoted(name), note)) for name, note in notes]))
    return Report(
        title="Evaluation of solutions",
        command="trace-dataset evaluate --json",
        conclusion=Conclusion(Status.FAILED if failed else Status.PASSED, summary),
        payload={
            "totals": {"solutions": len(verdicts), **counts},
            "solutions": [verdict.as_dict() for verdict in verdicts],
        },
        sections=[Section("", tables)],
        is_said=True,
    )


def _row(verdict: SolutionVerdict) -> Row:
    where = f"{verdict.case}: " if verdict.case and verdict.reason else ""
    cells = (
        Quoted(verdict.solution),
        Quoted(verdict.definition),
        verdict.verdict,
        str(len(verdict.cases)),
        f"{verdict.seconds:.1f}",
        f"{where}{verdict.reason}",
    )
    status = _STATUSES.get(verdict.verdict, Status.FAILED)
    return Row(cells, status, f"{verdict.verdict}: {where}{verdict.reason}")


def _times(verdict: SolutionVerdict) -> list[Row]:
    rows = []
    for case in verdict.cases:
        if (timing := case.timing) is not None:
            names = (
                *("latency_ms", "spread_ms", "host_ms"),
                *("reference_latency_ms", "production_latency_ms"),
            )
            figures = [timing.get(name) for name in names]
            cells = ["-" if f is None else f"{f:.4f}" for f in figures]
            cells[0] += f" ± {timing['error_ms']:.4f}"
            ratios = ("speedup_factor", "fraction_of_light", "fraction_of_measured")
            shares = [timing.get(name) for name in ratios]
            cells += ["-" if f is None else f"{f:.2f}" for f in shares]
            if shares[0] is not None:
                cells[len(figures)] += f" ± {timing['speedup_error']:.2f}"
            about = Quoted(verdict.solution), Quoted(case.case)
            rows.append(Row((*about, *cells, _doubts(timing))))
    return rows


def _memory(verdict: SolutionVerdict) -> list[Row]:
    """Return a row for the memory of its calls, then one for each rival."""
    memory = verdict.memory
    if not memory:
        return []
    about = Quoted(verdict.solution), Quoted(memory["case"])
    details = f"outputs {_mebibytes(memory['output_bytes'])}"
    if memory["driver_bytes"] is not None:
        details += f", of the driver {_mebibytes(memory['driver_bytes'])}"
    size = _mebibytes(memory["peak_memory_bytes"])
    rows = [Row((*about, size, "this solution", details))]
    rows += [
        Row((*about, _mebibytes(size), name, ""))
        for name, size in memory["rivals"].items()
    ]
    return rows + [
        Row((*about, "-", name, Quoted(why)))
        for name, why in memory["not_measured"].items()
    ]


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:.1f}"


def _conditions(verdict: SolutionVerdict) -> list[Row]:
    rows = []
    for name, condition in verdict.conditions.items():
        parts = condition["details"].items()
        # parts that hold as well say more than the first reason
        details = ", ".join(f"{key} {value}" for key, value in parts)
        reason = " · ".join(filter(None, (condition["reason"], details)))
        status = _OF_CONDITIONS.get(condition["verdict"], Status.OPEN)
        cells = (Quoted(verdict.solution), name, condition["verdict"], reason)
        rows.append(Row(cells, status))
    return rows


def _doubts(timing: Mapping[str, Any]) -> str:
    """Return what a figure is of, and what it does not say: too short, too few, slowed."""
    doubts = []
    if timing["starts"] > 1:
        apart = f"{1e3 * timing['deviation_ms']:.1f} µs apart"
        untimed = timing["starts_untimed"]
        lacks = f" and {untimed} without times" if untimed else ""
        doubts.append(f"{timing['starts']} starts{lacks}, {apart}")
    if timing.get("outliers"):
        doubts.append(f"{timing['outliers']} of the starts far from the others")
    if not timing["resolved"]:
        resolution = 1e3 * timing["resolution_ms"]
        doubts.append(f"at the clock's resolution, {resolution:.1f} µs")
    # of several starts the error says it
    is_one = timing["starts"] == 1
    if is_one and not timing["settled"]:
        doubts.append("median within 1 % not reached")
    if is_one and not timing.get("production_settled", True):
        doubts.append("production's median within 1 % not reached")
    if not timing["fresh"]:
        doubts.append("the workload states all values: they repeat")
    if timing.get("throttled"):
        doubts.append(f"{timing['throttled']} rounds discarded, the GPU was throttled")
    return "; ".join(doubts)
