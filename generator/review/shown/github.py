"""A review as GitHub's workflow commands: new problems where they are, then reasons."""

from __future__ import annotations

from collections.abc import Iterator

from generator.reports import Style, github
from generator.review.review import Review, Verdict
from generator.wording import one_line


def report(review: Review, style: Style) -> Iterator[str]:
    """Yield a command for each new problem, for each reason, and the verdict."""
    counts = review.compared.counts
    pieces = list(github.report(review.compared.new, counts, style))
    # the last one is a line that counts what both sides have
    yield from pieces[:-1]
    command = "error" if review.verdict is Verdict.CHANGES else "warning"
    for reason in review.reasons:
        yield f"::{command} title=review::{_data(one_line(reason, 1000))}\n"
    yield f"::notice title=review::verdict: {review.verdict.value}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25")
