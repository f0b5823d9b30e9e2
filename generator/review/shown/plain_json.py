"""The review as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterator

from generator.reports import Style
from generator.review.review import Review


def report(review: Review, style: Style) -> Iterator[str]:
    """Yield the object."""
    yield json.dumps(review.as_dict(), indent=2) + "\n"
