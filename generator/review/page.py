"""The review as one page that works from a file: nothing is loaded, text is inert.

Every value that the template prints is one line of printable characters and escaped.
The policy of the page lets its own style and script run and nothing else, by their
hashes; the page is complete without the script, which filters and sorts.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from generator.dataset.paths import DatasetFile
from generator.problems import Severity
from generator.problems.messages import one_line, plural
from generator.reports.report import place
from generator.reports.templates import html_environment, templates
from generator.results.evidence import SKIPPED
from generator.results.verification import lines_of
from generator.results.verification_report import nmse_of
from generator.review import figures
from generator.review.change import Change
from generator.review.context import ReviewContext
from generator.review.executed import Executed, ExecutedComparison
from generator.review.line_diff import DiffLine, line_diff
from generator.review.report import (
    classes,
    details,
    headline,
    of_checks,
    of_claims,
    of_run,
    of_solutions,
    title,
)
from generator.review.review import FAILED_RUN, Review
from generator.rules.basis import basis_of
from kernel_judge.comparison.error_map import WITHIN

_LONGEST = 1000
_DIFF_LINES = 6000
_SEVERITIES = list(Severity)
FAILED, PASSED, OPEN = "failed", "passed", "open"
"""The kinds that the page's filter knows; open is what shows neither."""
_KINDS = {"FAILED": FAILED, "ERROR": FAILED, "PASSED": PASSED}

FIGURES = 80
"""Comparisons that are drawn; those that failed come first."""


@dataclass(frozen=True)
class PageRow:
    """One row; `target` is the id of what it leads to."""

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
    for n, comparisons in enumerate(sorted(by_source.values(), key=_rank), 1):
        comparisons.sort(key=_badness, reverse=True)
        yield _row(comparisons, executed, f"g{n}"), comparisons


def _rank(comparisons: Sequence[ExecutedComparison]) -> tuple[bool, bool, bool]:
    """Return where a group stands: what failed and can be drawn comes first."""
    bad = [c for c in comparisons if c.is_bad]
    is_skipped = all(c.verdict == SKIPPED for c in comparisons)
    return not any(c.where for c in bad), not bad, is_skipped


def _badness(comparison: ExecutedComparison) -> tuple[bool, float, float]:
    return (comparison.is_bad, _number(comparison.worst), _number(comparison.nmse))


def _number(value: float | None) -> float:
    """Return a figure to compare by: nothing is worse than NaN, and none is least."""
    if value is None:
        return -math.inf
    return math.inf if math.isnan(value) else value


def result_of(
    comparisons: Sequence[ExecutedComparison], executed: Executed
) -> tuple[str, str]:
    """Return kind and status of comparisons together: the worst one's."""
    bad = [c.verdict for c in comparisons if c.is_bad]
    if bad:
        return FAILED, "failed" if "FAILED" in bad else "error"
    if all(c.verdict == SKIPPED for c in comparisons):
        return OPEN, "skipped"
    # a pass of a run that is not believed is no pass
    return (OPEN, "not believed") if executed.problems else (PASSED, "passed")


def _row(
    comparisons: list[ExecutedComparison], executed: Executed, target: str
) -> PageRow:
    worst = comparisons[0]
    hits = [c.hit_ratio for c in comparisons if c.hit_ratio is not None]
    bad = sum(c.is_bad for c in comparisons)
    count = plural(len(comparisons), "comparison")
    failures = f"{bad} of {count} failed" if bad else count
    return PageRow(
        *result_of(comparisons, executed),
        worst.definition,
        worst.source,
        f"this run, {executed.device}",
        target,
        failures if worst.output else "".join(worst.findings[:1]),
        worst.case,
        max((c.nmse for c in comparisons), key=_number),
        min(hits, key=lambda v: -_number(-v), default=None),
        max((c.worst for c in comparisons), key=_number),
    )


def _evidence_rows(
    change: Change, known: ReviewContext, target: str
) -> Iterator[PageRow]:
    """Yield what verification/ has on a changed definition; nothing where it is gone.

    What the change itself brings is its author's word.
    """
    if change.new is None:
        return
    file = DatasetFile(*change.key, change.path)
    runs = sorted(known.after, key=lambda run: run.key)
    for line in lines_of(file, basis_of(change.new), runs):
        kind, status = _KINDS.get(line.verdict, OPEN), line.verdict.lower()
        notes, origin = [line.note], ""
        if line.source:
            parts = one_line(line.run.device, 80), one_line(line.run.date, 10)
            origin = ", ".join(filter(None, parts))
            if not line.stale and not known.counts(line.run, line.definition):
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
            target,
            "; ".join(filter(None, notes)),
            plural(v.cases, "case") if v is not None else "",
            v.nmse if v is not None else None,
            v.hit_ratio if v is not None else None,
        )


def page(review: Review) -> str:
    """Return the page."""
    css, script = _file("page.css"), _file("page.js")
    executed = review.executed
    groups = list(groups_of(executed)) if executed is not None else []
    comparisons = executed.comparisons if executed is not None else ()
    known = review.known
    shown = [
        row
        for n, change in enumerate(review.changes, 1)
        if known is not None
        for row in _evidence_rows(change, known, f"d{n}")
    ]
    jinja = html_environment()
    jinja.finalize = _inert
    return jinja.get_template("review/page.html.jinja").render(
        review=review,
        # the tests that failed have a list of their own
        reasons=[str(r) for r in review.grounds if r.point != FAILED_RUN],
        counts=[review.count(severity) for severity in _SEVERITIES],
        groups=groups,
        solutions=of_solutions(review.evaluated) if review.evaluated else None,
        claims=of_claims(review.evaluated) if review.evaluated else None,
        rows=[*(row for row, _ in groups), *shown],
        run=list(of_run(executed)) if executed is not None else [],
        crossed=list(review.crossed.lines) if review.crossed is not None else [],
        ids={comparison: f"c{n}" for n, comparison in enumerate(comparisons, 1)},
        drawings={*[c for c in comparisons if c.where][:FIGURES]},
        result_of=result_of,
        new=sorted(
            (*review.findings, *review.compared.new),
            key=lambda p: _SEVERITIES.index(p.severity),
        ),
        classes=classes(review),
        checks=of_checks(review.checks),
        diffs=list(_diffs(review)),
        css=Markup(css),
        script=Markup(script),
        policy=f"default-src 'none'; style-src '{_hash(css)}'; script-src "
        f"'{_hash(script)}'; base-uri 'none'; form-action 'none'",
        figures=figures,
        nmse_of=nmse_of,
        within=WITHIN,
        headline=headline,
        title=title,
        details=details,
        place=place,
    )


def _diffs(review: Review) -> Iterator[tuple[DiffLine, ...] | None]:
    """Yield each change's lines of the reference that differ; None where too many."""
    room = _DIFF_LINES
    for change in review.changes:
        old = change.old.reference if change.old is not None else ""
        new = change.new.reference if change.new is not None else ""
        diff = line_diff(old, new) if old != new else ()
        if diff is not None and len(diff) > room:
            diff = None
        room -= len(diff or ())
        yield diff


def _file(name: str) -> str:
    return (templates() / "review" / name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _inert(value: object) -> object:
    """Return what a template prints: of text one line that a browser shows as it is."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return one_line(value, _LONGEST)
    return value
