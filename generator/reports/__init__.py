"""Print what a validation found, one format a module.

Each is a generator: it takes Problems as they come, with Counts that are right once
the last one came, and yields pieces of text. A dataset's text is hostile until shown
otherwise: what comes out is inert in the program that will show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

from generator.problems import Problem
from generator.validate import Counts


@dataclass(frozen=True)
class Style:
    """Hold how a report is wanted.

    `prefix` leads from the repository's root to the dataset's, for readers who show
    files; it is empty or ends in a slash. `notes` asks for notes where they are left
    out, `strict` says that warnings fail.
    """

    prefix: str = ""
    notes: bool = False
    strict: bool = False


class Report(Protocol):
    """Turn Problems into text."""

    def __call__(
        self, problems: Iterable[Problem], counts: Counts, style: Style
    ) -> Iterator[str]:
        """Yield the pieces of the report."""


FORMATS: Mapping[str, str] = {
    "text": "text",
    "json": "plain_json",
    "sarif": "sarif",
    "junit": "junit",
    "markdown": "markdown",
    "github": "github",
}
"""What --format takes → the module that prints it."""


def report(form: str) -> Report:
    """Return the report of a format; only its own module is imported."""
    found: Report = import_module(f"generator.reports.{FORMATS[form]}").report
    return found
