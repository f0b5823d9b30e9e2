"""Review a change of a dataset: what is new, what it breaks, what is still to be shown.

Both sides are read through git into a temporary folder; nothing of either is executed
here, and nothing is checked out into the user's tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from generator import reports

if TYPE_CHECKING:
    from generator.review.review import Review

FORMATS = (*reports.FORMATS, "html")


def shown(
    review: Review, form: str, *, prefix: str = "", notes: bool = False
) -> Iterator[str]:
    """Yield the pieces of a review in a format of FORMATS."""
    if form == "html":
        # Jinja takes time to import, and only the page needs it
        from generator.review.page import page

        yield page(review)
        return
    from generator.review.report import review_report

    yield from reports.printed(review_report(review, prefix=prefix, notes=notes), form)
