"""Print a review, one format a module; text of the dataset is inert in each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Protocol

from generator.reports import Style
from generator.review.review import Review


class Shown(Protocol):
    """Turn a review into text."""

    def __call__(self, review: Review, style: Style) -> Iterator[str]:
        """Yield the pieces of the report."""


FORMATS: Mapping[str, str] = {
    "text": "text",
    "markdown": "markdown",
    "json": "plain_json",
    "junit": "junit",
    "sarif": "sarif",
    "github": "github",
    "html": "html",
}
"""What --format takes → the module that prints it."""


def shown(form: str) -> Shown:
    """Return the report of a format; only its own module is imported."""
    found: Shown = import_module(f"generator.review.shown.{FORMATS[form]}").report
    return found
