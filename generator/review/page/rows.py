"""The rows of the page's table: what each definition was compared with, and the result.

A row sums up the comparisons of a run for one definition and source, or is a line of
the dataset's evidence.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from generator.dataset.paths import DatasetFile, Discovered
from generator.problems.messages import one_line, plural
from generator.results.evidence import SKIPPED
from generator.results.verification import table_of
from generator.review.change import Change
from generator.review.checklist import ReviewContext
from generator.review.executed import Executed, ExecutedComparison

FAILED, PASSED, OPEN = "failed", "passed", "open"
"""The kinds that the page's filter knows; open is what shows neither."""
_KINDS = {"FAILED": FAILED, "ERROR": FAILED, "PASSED": PASSED}

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
    target: str
    note: str
    case: str = ""
    nmse: float | None = None
    within: float | None = None
    worst: float | None = None


def groups_of(
    executed: Executed,
) -> Iterator[tuple[PageRow, Sequence[ExecutedComparison]]]:
    """Yield what a run compared, by definition and source; what failed comes first."""
    by_source: dict[tuple[str, str], list[ExecutedComparison]] = defaultdict(list)
    for comparison in executed.comparisons:
        by_source[comparison.definition, comparison.source].append(comparison)
    for n, found in enumerate(sorted(by_source.values(), key=_rank), 1):
        found.sort(key=_badness, reverse=True)
        yield _row(found, executed, f"g{n}"), found


def _rank(found: Sequence[ExecutedComparison]) -> int:
    """Return where a group stands: what failed and can be drawn comes first."""
    bad = [c for c in found if c.is_bad]
    if bad:
        return 0 if any(c.where for c in bad) else 1
    return 3 if all(c.verdict == SKIPPED for c in found) else 2


def _badness(comparison: ExecutedComparison) -> tuple[bool, float, float]:
    return (comparison.is_bad, _number(comparison.worst), _number(comparison.nmse))


def _number(value: float | None) -> float:
    """Return a figure to compare by: nothing is worse than NaN, and none is least."""
    if value is None:
        return -math.inf
    return math.inf if math.isnan(value) else value


def result_of(
    found: Sequence[ExecutedComparison], executed: Executed
) -> tuple[str, str]:
    """Return kind and status of comparisons together: the worst one's."""
    bad = [c.verdict for c in found if c.is_bad]
    if bad:
        return FAILED, "failed" if "FAILED" in bad else "error"
    if all(c.verdict == SKIPPED for c in found):
        return OPEN, "skipped"
    # a pass of a run that is not believed is no pass
    return (OPEN, "not believed") if executed.problems else (PASSED, "passed")


def _row(found: list[ExecutedComparison], executed: Executed, target: str) -> PageRow:
    worst = found[0]
    hits = [c.hit_ratio for c in found if c.hit_ratio is not None]
    bad = sum(c.is_bad for c in found)
    told = plural(len(found), "comparison")
    said = f"{bad} of {told} failed" if bad else told
    return PageRow(
        *result_of(found, executed),
        worst.definition,
        worst.source,
        f"this run, {executed.device}",
        target,
        said if worst.output else "".join(worst.findings[:1]),
        worst.case,
        max((c.nmse for c in found), key=_number),
        min(hits, key=lambda v: -_number(-v), default=None),
        max((c.worst for c in found), key=_number),
    )


def evidence_rows(changes: Sequence[Change], known: ReviewContext) -> Iterator[PageRow]:
    """Yield what verification/ has on the changed definitions; none where one is gone.

    What the change itself brings is its author's word.
    """
    targets = {c.name: f"d{n}" for n, c in enumerate(changes, 1)}
    files = tuple(
        DatasetFile(*change.key, change.path)
        for change in changes
        if change.new is not None
    )
    try:
        table = table_of(known.root, Discovered(files, (), ()), known.after)
    except OSError:
        return
    for line in table.lines:
        kind, status = _KINDS.get(line.verdict, OPEN), line.verdict.lower()
        notes, origin = [line.note], ""
        if line.run:
            run = table.runs[line.run - 1]
            machine = run.machine.get("gpu") or run.machine.get("device", "")
            parts = one_line(machine, 80), one_line(run.date, 10)
            origin = ", ".join(filter(None, parts))
            if not line.stale and not known.counts(run, line.definition):
                notes.append("the change itself says so")
                kind, status = (OPEN, "claimed") if kind == PASSED else (kind, status)
        if line.stale:
            kind, status = OPEN, f"stale: {status}"
        v = line.figures
        yield PageRow(
            kind,
            status,
            line.definition,
            line.source or "nothing",
            origin,
            targets.get(line.definition, "changes"),
            "; ".join(filter(None, notes)),
            plural(v.cases, "case") if v is not None else "",
            v.nmse if v is not None else None,
            v.hit_ratio if v is not None else None,
        )
