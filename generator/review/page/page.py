"""The review as one page that works from a file: nothing is loaded, text is inert.

Every value that the template prints is one line of printable characters and escaped.
The policy of the page lets its own style and script run and nothing else, by their
hashes; the page is complete without the script, which filters and sorts.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from generator.problems import Severity
from generator.problems.messages import one_line
from generator.rendering.render import templates
from generator.reports.report import place
from generator.review.page import figures
from generator.review.page.line_diff import DiffLine, line_diff
from generator.review.page.rows import FIGURES, groups_of, result_of
from generator.review.report import details, headline, of_run, title
from generator.review.review import Review
from generator.testing.error_map import WITHIN

_LONGEST = 1000
_DIFF_LINES = 6000
_SEVERITIES = list(Severity)


def page(review: Review) -> str:
    """Return the page."""
    css, script = _file("page.css"), _file("page.js")
    executed = review.executed
    groups = list(groups_of(executed)) if executed is not None else []
    comparisons = executed.comparisons if executed is not None else ()
    environment = Environment(
        loader=FunctionLoader(_file),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
        finalize=_inert,
    )
    return environment.get_template("page.html.jinja").render(
        review=review,
        # the tests that failed have a list of their own
        reasons=[r for r in review.reasons if r not in review.of_tests],
        counts=[review.count(severity) for severity in _SEVERITIES],
        groups=groups,
        rows=[*(row for row, _ in groups), *review.kept],
        run=list(of_run(executed)) if executed is not None else [],
        ids={comparison: f"c{n}" for n, comparison in enumerate(comparisons, 1)},
        drawings={*[c for c in comparisons if c.where][:FIGURES]},
        result_of=result_of,
        new=sorted(review.compared.new, key=lambda p: _SEVERITIES.index(p.severity)),
        diffs=list(_diffs(review)),
        css=Markup(css),
        script=Markup(script),
        policy=f"default-src 'none'; style-src '{_hash(css)}'; script-src "
        f"'{_hash(script)}'; base-uri 'none'; form-action 'none'",
        figures=figures,
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
