"""Print reports of any command, one format a module.

Each printer is a generator of pieces of text, and takes problems as they come. A
dataset's text is hostile until shown otherwise: what comes out is inert in the program
that will show it.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from generator.reports.report import Report

FORMATS = ("text", "json", "sarif", "junit", "markdown", "github")
"""What --format takes: the modules that print."""

_BRACKETS = {"json": "\\u005b", "sarif": "\\u005b", "junit": "&#91;"}
"""How a format writes the bracket of `##[`, which GitHub's runner takes for a command
anywhere in a line; other formats put a space before it."""


def printed(report: Report, form: str) -> Iterator[str]:
    """Yield the pieces of a report; only the module of its format is imported."""
    bracket = _BRACKETS.get(form, " [")
    for piece in import_module(f"generator.reports.{form}").pieces(report):
        yield piece.replace("##[", f"##{bracket}") if "##[" in piece else piece
