"""Verdicts in colour, for whoever reads a report on a terminal."""

from __future__ import annotations

import os
import re
import sys

import click

_GOOD, _BAD, _OPEN = "green", "red", "yellow"
_OF_VERDICT = {"approve": _GOOD, "changes needed": _BAD}
_OF_SEVERITY = {"error": _BAD, "warning": _OPEN}
_UNDECIDED = {"SKIPPED", "OPEN", "UNKNOWN"}

_PROBLEM = re.compile(r"^(  )(error|warning)(?=:)", re.MULTILINE)
_CONCLUSION = re.compile(r"^(verdict: )(.+)$", re.MULTILINE)
# a cell of a table: two spaces part columns
_CELL = re.compile(
    r"(?<=  )(PASSED|FAILED|SKIPPED|OPEN|UNKNOWN|INVALID|TIMEOUT|[A-Z]+_[A-Z_]+)(?=  |$)",
    re.MULTILINE,
)


def is_coloured() -> bool:
    """Return whether stdout is a terminal whose reader did not ask for no colours."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not is_plain


def coloured(text: str) -> str:
    """Return a piece of a report as text with what it comes to in colour."""
    text = _PROBLEM.sub(lambda m: m[1] + _styled(m[2], _OF_SEVERITY[m[2]]), text)
    text = _CONCLUSION.sub(
        lambda m: m[1] + _styled(m[2], _OF_VERDICT.get(m[2], _OPEN)), text
    )
    return _CELL.sub(lambda m: _styled(m[1], _of_cell(m[1])), text)


def _of_cell(word: str) -> str:
    return _GOOD if word == "PASSED" else _OPEN if word in _UNDECIDED else _BAD


def _styled(text: str, colour: str) -> str:
    return click.style(text, fg=colour, bold=True)
