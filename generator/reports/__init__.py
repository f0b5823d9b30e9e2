"""Print reports of any command, one format a module.

Each printer is a generator of pieces of text, and takes problems as they come. A
dataset's text is hostile until shown otherwise: what comes out is inert in the program
that will show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from generator.reports.report import Report

FORMATS: Mapping[str, str] = {
    "text": "text",
    "json": "plain_json",
    "sarif": "sarif",
    "junit": "junit",
    "markdown": "markdown",
    "github": "github",
}
"""What --format takes → the module that prints it."""


def printed(report: Report, form: str) -> Iterator[str]:
    """Yield the pieces of a report; only the module of its format is imported."""
    yield from import_module(f"generator.reports.{FORMATS[form]}").pieces(report)
