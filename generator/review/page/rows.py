"""The rows of the page's table: what each definition was compared with, and the result.

A row sums up the comparisons of a run for one definition and source, or is a line of
the dataset's evidence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from generator.problems.messages import plural
from generator.results.evidence import SKIPPED
from generator.review.comparisons import ExecutedComparison
from generator.review.kept import EvidenceLine
from generator.review.review import Executed, Review

FAILED, PASSED, OPEN = "failed", "passed", "open"
"""The kinds that the page's filter knows; open is what shows neither."""

FIGURES = 80
"""Comparisons that are drawn; those that failed come first."""


@dataclass(frozen=True)
class PageRow:
    """Hold one row; `target` is the id of what it leads to."""

    kind: str
    status: str
    definition: str
    source: str
    origin: str
    nmse: float | None
    within: float | None
    worst: float | None
    case: str
    note: str
    target: str


@dataclass(frozen=True)
class PageComparison:
    """Hold a comparison as the page shows it; `id` is its anchor."""

    id: str
    kind: str
    status: str
    of: ExecutedComparison
    is_drawn: bool


@dataclass(frozen=True)
class Group:
    """Hold the comparisons of one definition with one source, those that failed first."""

    row: PageRow
    bad: tuple[PageComparison, ...]
    others: tuple[PageComparison, ...]


def groups_of(executed: Executed) -> tuple[Group, ...]:
    """Return what a run compared, by definition and source; what failed comes first."""
    drawn = set([c for c in executed.comparisons if c.where][:FIGURES])
    by_source: dict[tuple[str, str], list[PageComparison]] = {}
    for n, c in enumerate(executed.comparisons, 1):
        shown = PageComparison(f"c{n}", *_result([c], executed), c, c in drawn)
        by_source.setdefault((c.definition, c.source), []).append(shown)
    groups = []
    for n, found in enumerate(sorted(by_source.values(), key=_rank), 1):
        found.sort(key=lambda shown: _badness(shown.of), reverse=True)
        row = _row([shown.of for shown in found], executed, f"g{n}")
        bad = tuple(shown for shown in found if shown.kind == FAILED)
        groups.append(Group(row, bad, tuple(s for s in found if s.kind != FAILED)))
    return tuple(groups)


def _rank(found: Sequence[PageComparison]) -> int:
    """Return where a group stands: what failed and can be drawn comes first."""
    bad = [shown.of for shown in found if shown.of.is_bad]
    if bad:
        return 0 if any(c.where for c in bad) else 1
    return 3 if all(shown.of.verdict == SKIPPED for shown in found) else 2


def _badness(comparison: ExecutedComparison) -> tuple[bool, float, float]:
    return (comparison.is_bad, _number(comparison.worst), _number(comparison.nmse))


def _number(value: float | None) -> float:
    """Return a figure to compare by: nothing is worse than NaN, and none is least."""
    if value is None:
        return -math.inf
    return math.inf if math.isnan(value) else value


def _result(found: Sequence[ExecutedComparison], executed: Executed) -> tuple[str, str]:
    """Return kind and status of comparisons together: the worst one's."""
    bad = [c.verdict for c in found if c.is_bad]
    if bad:
        return FAILED, "failed" if "FAILED" in bad else "error"
    if all(c.verdict == SKIPPED for c in found):
        return OPEN, "skipped"
    # a pass of a run that is not believed is no pass
    return (OPEN, "not believed") if executed.problems else (PASSED, "passed")


def _row(
    found: Sequence[ExecutedComparison], executed: Executed, target: str
) -> PageRow:
    worst = max(found, key=_badness)
    hits = [c.hit_ratio for c in found if c.hit_ratio is not None]
    bad = sum(c.is_bad for c in found)
    note = ""
    if worst.output:
        told = plural(len(found), "comparison")
        note = f"{bad} of {told} failed" if bad else told
    elif worst.findings:
        note = worst.findings[0]
    return PageRow(
        *_result(found, executed),
        worst.definition,
        worst.source,
        f"this run, {executed.device}",
        max((c.nmse for c in found), key=_number),
        min(hits, key=lambda v: -_number(-v), default=None),
        max((c.worst for c in found), key=_number),
        worst.case,
        note,
        target,
    )


def rows_of(review: Review, groups: Sequence[Group]) -> Iterator[PageRow]:
    """Yield the rows of the run, then those of the dataset's evidence."""
    yield from (group.row for group in groups)
    targets = {c.name: f"d{n}" for n, c in enumerate(review.changes, 1)}
    for kept in review.kept:
        yield _kept(kept, targets.get(kept.line.definition, "changes"))


def _kept(kept: EvidenceLine, target: str) -> PageRow:
    line = kept.line
    kinds = {"FAILED": FAILED, "ERROR": FAILED, "PASSED": PASSED}
    kind, status = kinds.get(line.verdict, OPEN), line.verdict.lower()
    notes = [line.note] if line.note else []
    if line.stale:
        kind, status = OPEN, f"stale: {status}"
    elif kept.is_claim:
        notes.append("the change itself says so")
        kind, status = (OPEN, "claimed") if kind == PASSED else (kind, status)
    v = line.figures
    return PageRow(
        kind,
        status,
        line.definition,
        line.source or "nothing",
        ", ".join(filter(None, (kept.machine, kept.date))),
        v.nmse if v is not None else None,
        v.hit_ratio if v is not None else None,
        None,
        plural(v.cases, "case") if v is not None else "",
        "; ".join(notes),
        target,
    )
