"""The new problems of a review as SARIF; the verdict is in the exit status alone."""

from __future__ import annotations

from collections.abc import Iterator

from generator.reports import Style, sarif
from generator.review.review import Review


def report(review: Review, style: Style) -> Iterator[str]:
    """Yield the log."""
    yield from sarif.report(review.compared.new, review.compared.counts, style)
