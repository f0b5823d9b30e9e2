"""A review in any format: that of a report, or a page of its own."""

from __future__ import annotations

from collections.abc import Iterator

from generator.reports import FORMATS as PRINTED
from generator.reports import printed
from generator.review.report import review_report
from generator.review.review import Review

FORMATS = (*PRINTED, "html")


def shown(
    review: Review, form: str, *, prefix: str = "", notes: bool = False
) -> Iterator[str]:
    """Yield the pieces of a review in a format of FORMATS."""
    if form == "html":
        # Jinja takes time to import, and only the page needs it
        from generator.review.page.page import page

        yield page(review)
        return
    yield from printed(review_report(review, prefix=prefix, notes=notes), form)
