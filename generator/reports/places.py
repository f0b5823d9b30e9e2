"""Where a Problem is, for programs that open files."""

from __future__ import annotations

import os
from urllib.parse import quote

from generator.problems import Problem
from generator.reports import Style


def line_of_file(problem: Problem) -> int | None:
    """Return the line of the file; a line of a reference is not one of its file."""
    is_inner = problem.pointer and not problem.file.endswith(".jsonl")
    return None if is_inner else problem.line


def uri(problem: Problem, style: Style) -> str:
    """Return the file as a relative URI reference, whatever bytes its name has."""
    path = os.fsencode(style.prefix + problem.file)
    return quote(path, safe="/")
