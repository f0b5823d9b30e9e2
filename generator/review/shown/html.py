"""The review as one page that works from a file: nothing is loaded, text is inert.

Every value that the template prints is one line of printable characters and escaped.
The policy of the page lets its own style and script run and nothing else, by their
hashes; the page is complete without the script, which filters and sorts.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from generator.problems import Problem, Severity
from generator.reports import Style
from generator.review.change import Change
from generator.review.review import Review
from generator.review.shown.html_diff import DiffLine, line_diff
from generator.review.shown.html_figures import LEVELS
from generator.review.shown.html_table import FAILED, OPEN, PASSED, groups_of, rows_of
from generator.review.shown.text import details, headline, of_run, title
from generator.wording import one_line

_FOLDER = Path(__file__).parents[2] / "templates" / "review"
_LONGEST = 1000
_ROWS = 3000
_PROBLEMS = 500
_DIFF_LINES = 6000


@dataclass(frozen=True)
class ShownChange:
    """Hold one change for the template; `diff` is None where the texts are too long."""

    id: str
    title: str
    change: Change
    details: tuple[str, ...]
    diff: tuple[DiffLine, ...] | None


def report(review: Review, style: Style) -> Iterator[str]:
    """Yield the page."""
    css, script = _file("page.css"), _file("page.js")
    template = _environment().get_template("page.html.jinja")
    yield template.render(
        **_content(review),
        css=Markup(css),
        script=Markup(script),
        policy=_policy(css, script),
    )


def _content(review: Review) -> dict[str, Any]:
    """Return what the template prints; what is too much is cut, and counted."""
    executed = review.executed
    groups = groups_of(executed) if executed is not None else ()
    rows = list(rows_of(review, groups))
    # the tests that failed have a list of their own
    reasons = [r for r in review.reasons if not r.startswith("failed when run: ")]
    new = sorted(review.compared.new, key=lambda p: _SEVERITIES.index(p.severity))
    return {
        "headline": headline(review),
        "verdict": review.verdict,
        "review": review,
        "reasons": reasons[:50],
        "more_reasons": max(len(reasons) - 50, 0),
        "failed": executed.failed[:_PROBLEMS] if executed is not None else (),
        "more_failed": max(len(executed.failed) - _PROBLEMS, 0) if executed else 0,
        "tiles": _tiles(review),
        "groups": groups,
        "failing": [s for g in groups for s in g.bad if s.drawn][:1],
        "rows": rows[:_ROWS],
        "more_rows": max(len(rows) - _ROWS, 0),
        "kinds": [
            (name, label, sum(row.kind == name for row in rows))
            for name, label in _KINDS
        ],
        "sources": sorted({row.source for row in rows}),
        "run": list(of_run(executed)) if executed is not None else [],
        "levels": [f"{upper:g}" for upper in LEVELS[:-1]],
        "new": new[:_PROBLEMS],
        "mended": review.compared.mended[:_PROBLEMS],
        "more_new": max(len(new) - _PROBLEMS, 0),
        "more_mended": max(len(review.compared.mended) - _PROBLEMS, 0),
        "place": _place,
        "changes": _changes(review.changes),
        "files": (*review.evidence, *review.tests, *review.others)[:_PROBLEMS],
    }


_SEVERITIES = [Severity.ERROR, Severity.WARNING, Severity.NOTE]
_KINDS = (
    (FAILED, "Failed"),
    (PASSED, "Passed"),
    (OPEN, "Open"),
)


def _tiles(review: Review) -> list[tuple[str, int, str]]:
    """Return (what is counted, how many, which colour it has)."""
    compared = review.compared
    errors = review.count(Severity.ERROR)
    warnings = review.count(Severity.WARNING)
    return [
        ("new errors", errors, "bad" if errors else ""),
        ("new warnings", warnings, "warn" if warnings else ""),
        ("new notes", review.count(Severity.NOTE), ""),
        ("mended", len(compared.mended), "good" if compared.mended else ""),
        ("there before", compared.known, ""),
        ("changed definitions", len(review.changes), ""),
    ]


def _place(problem: Problem) -> str:
    place = f"{problem.file}#{problem.pointer}" if problem.pointer else problem.file
    return place if problem.line is None else f"{place} line {problem.line}"


def _changes(changes: Sequence[Change]) -> list[ShownChange]:
    shown, room = [], _DIFF_LINES
    for number, change in enumerate(changes, 1):
        diff = _diff(change)
        if diff is not None and len(diff) > room:
            diff = None
        room -= len(diff or ())
        said = tuple(details(change))
        shown.append(ShownChange(f"d{number}", title(change), change, said, diff))
    return shown


def _diff(change: Change) -> tuple[DiffLine, ...] | None:
    """Return the lines of both references that differ; () where both are the same."""
    old = change.old.reference if change.old is not None else ""
    new = change.new.reference if change.new is not None else ""
    return line_diff(old, new) if old != new else ()


def _policy(css: str, script: str) -> str:
    """Return the content security policy: this style, this script, nothing else."""
    return (
        f"default-src 'none'; style-src '{_hash(css)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _file(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8")


@cache
def _environment() -> Environment:
    return Environment(
        loader=FunctionLoader(_file),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
        finalize=_inert,
    )


def _inert(value: object) -> object:
    """Return what a template prints: of text one line that a browser shows as it is."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return one_line(value, _LONGEST)
    return value
