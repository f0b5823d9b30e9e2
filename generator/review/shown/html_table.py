"""The rows of the page's table: what each definition was compared with, and the result.

A row sums up the comparisons of a run for one definition and source, or is a line of
the dataset's evidence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from generator.evidence import SKIPPED
from generator.review.comparisons import Comparison
from generator.review.kept import Kept
from generator.review.review import Executed, Review
from generator.review.shown.html_figures import Figures, figures, ratio
from generator.wording import plural

FAILED, PASSED, OPEN = "failed", "passed", "open"
"""The kinds that the page's filter knows; open is what shows neither."""

FIGURES = 80
"""Comparisons that are drawn; those that failed come first."""


@dataclass(frozen=True)
class Figure:
    """Hold a figure for a person, and for sorting; both are empty where there is none."""

    text: str = ""
    value: str = ""


@dataclass(frozen=True)
class Row:
    """Hold one row; `target` is the id of what it leads to."""

    kind: str
    status: str
    definition: str
    source: str
    origin: str
    nmse: Figure
    within: Figure
    worst: Figure
    case: str
    note: str
    target: str


@dataclass(frozen=True)
class Shown:
    """Hold a comparison as the page shows it; `id` is its anchor."""

    id: str
    kind: str
    status: str
    what: str
    findings: tuple[str, ...]
    nmse: Figure
    within: Figure
    worst: Figure
    drawn: Figures | None


@dataclass(frozen=True)
class Group:
    """Hold the comparisons of one definition with one source, those that failed first."""

    id: str
    definition: str
    source: str
    kind: str
    status: str
    bad: tuple[Shown, ...]
    others: tuple[Shown, ...]
    row: Row

    @property
    def note(self) -> str:
        """Return what its heading adds: of a failure the message stands below it."""
        return self.row.note if self.row.worst.text or not self.bad else ""


def groups_of(executed: Executed) -> tuple[Group, ...]:
    """Return what a run compared, by definition and source; what failed comes first."""
    by_source: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in executed.comparisons:
        key = (comparison.definition, comparison.source)
        by_source.setdefault(key, []).append(comparison)
    drawn = [c for c in executed.comparisons if c.where is not None][:FIGURES]
    numbers = {id(c): n for n, c in enumerate(executed.comparisons, 1)}
    allowed = {id(c) for c in drawn}
    ordered = sorted(by_source.items(), key=lambda item: _rank(item[1]))
    return tuple(
        _group(n, whom, found, executed, numbers, allowed)
        for n, (whom, found) in enumerate(ordered, 1)
    )


def _rank(found: Sequence[Comparison]) -> int:
    """Return where a group stands: what failed and can be drawn comes first."""
    bad = [c for c in found if c.is_bad]
    if bad:
        return 0 if any(c.where is not None for c in bad) else 1
    return 3 if all(c.verdict == SKIPPED for c in found) else 2


def _group(
    number: int,
    whom: tuple[str, str],
    found: Sequence[Comparison],
    executed: Executed,
    numbers: dict[int, int],
    allowed: set[int],
) -> Group:
    shown = [
        _shown(c, f"c{numbers[id(c)]}", executed, id(c) in allowed)
        for c in sorted(found, key=_badness, reverse=True)
    ]
    name = f"g{number}"
    kind, status = _of(found, executed)
    return Group(
        name,
        *whom,
        kind,
        status,
        tuple(s for s in shown if s.kind == FAILED),
        tuple(s for s in shown if s.kind != FAILED),
        _row(found, executed, kind, status, name),
    )


def _badness(comparison: Comparison) -> tuple[bool, float, float]:
    return (comparison.is_bad, _number(comparison.worst), _number(comparison.nmse))


def _number(value: float | None) -> float:
    """Return a figure to compare by: nothing is worse than NaN, and none is least."""
    if value is None:
        return -math.inf
    return math.inf if math.isnan(value) else value


def _of(found: Sequence[Comparison], executed: Executed) -> tuple[str, str]:
    """Return kind and status of comparisons together: the worst one's."""
    bad = [c.verdict for c in found if c.is_bad]
    if bad:
        return FAILED, "failed" if "FAILED" in bad else "error"
    if all(c.verdict == SKIPPED for c in found):
        return OPEN, "skipped"
    # a pass of a run that is not believed is no pass
    return (OPEN, "not believed") if executed.problems else (PASSED, "passed")


def _shown(
    comparison: Comparison, name: str, executed: Executed, is_drawn: bool
) -> Shown:
    kind, status = _of([comparison], executed)
    what = comparison.case
    if comparison.output:
        what = f"{comparison.case}: {comparison.output}"
    where = comparison.where if is_drawn else None
    return Shown(
        name,
        kind,
        status,
        what,
        comparison.findings,
        _nmse(comparison.nmse),
        _within(comparison.hit_ratio),
        _worst(comparison.worst),
        figures(where) if where is not None else None,
    )


def _row(
    found: Sequence[Comparison], executed: Executed, kind: str, status: str, target: str
) -> Row:
    worst = max(found, key=_badness)
    hits = [c.hit_ratio for c in found if c.hit_ratio is not None]
    known = [c.nmse for c in found if c.nmse is not None]
    ratios = [c.worst for c in found if c.worst is not None]
    bad = sum(c.is_bad for c in found)
    note = ""
    if worst.output:
        told = plural(len(found), "comparison")
        note = f"{bad} of {told} failed" if bad else told
    elif worst.findings:
        note = worst.findings[0]
    return Row(
        kind,
        status,
        worst.definition,
        worst.source,
        f"this run, {executed.device}",
        _nmse(max(known, key=_number, default=None)),
        _within(min(hits, key=lambda v: -_number(-v), default=None)),
        _worst(max(ratios, key=_number, default=None)),
        worst.case,
        note,
        target,
    )


def rows_of(review: Review, groups: Sequence[Group]) -> Iterator[Row]:
    """Yield the rows of the run, then those of the dataset's evidence."""
    yield from (group.row for group in groups)
    targets = {c.name: f"d{n}" for n, c in enumerate(review.changes, 1)}
    for kept in review.kept:
        yield _kept(kept, targets.get(kept.line.definition, "changes"))


def _kept(kept: Kept, target: str) -> Row:
    line = kept.line
    kind, status = OPEN, line.verdict.lower()
    if line.verdict in ("FAILED", "ERROR"):
        kind = FAILED
    elif line.verdict == "PASSED":
        kind = PASSED
    notes = [line.note] if line.note else []
    if line.stale:
        kind, status = OPEN, f"stale: {status}"
    elif kept.is_claim:
        notes.append("the change itself says so")
        kind, status = (OPEN, "claimed") if kind == PASSED else (kind, status)
    v = line.figures
    return Row(
        kind,
        status,
        line.definition,
        line.source or "nothing",
        ", ".join(filter(None, (kept.machine, kept.date))),
        _nmse(v.nmse if v is not None else None),
        _within(v.hit_ratio if v is not None else None),
        Figure(),
        plural(v.cases, "case") if v is not None else "",
        "; ".join(notes),
        target,
    )


def _nmse(value: float | None) -> Figure:
    if value is None:
        return Figure()
    return Figure("0" if value == 0.0 else f"{value:.1e}", _sortable(value))


def _within(value: float | None) -> Figure:
    """Return the share of elements within the tolerance, rounded down."""
    if value is None or not 0.0 <= value <= 1.0:
        return Figure("" if value is None else "none", "" if value is None else "-1")
    text = f"{math.floor(value * 1000) / 10:.1f}".removesuffix(".0")
    return Figure(f"{text} %", _sortable(value))


def _worst(value: float | None) -> Figure:
    return Figure() if value is None else Figure(ratio(value), _sortable(value))


def _sortable(value: float) -> str:
    """Return a number that JavaScript reads; it has no word for NaN that sorts."""
    return f"{value:.6g}" if math.isfinite(value) else "1e308"
