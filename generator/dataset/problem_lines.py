"""On which line of a dataset's file a problem is, for annotations of a change."""

from __future__ import annotations

from pathlib import Path

from generator.dataset.file_reading import read_text_file
from generator.problems import Problem
from generator.reports.json_place import line_of

_MOST_FILES = 100
_MAX_BYTES = 1024 * 1024


class ProblemLines:
    """The lines of pointers in a dataset's files; of very many files, of the first ones.

    Without a root nothing is looked up.
    """

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._texts: dict[str, str] = {}

    def __call__(self, problem: Problem) -> int | None:
        """Return the line, from 1; None of what has no pointer or can't be read."""
        if self._root is None or not problem.pointer:
            return None
        if len(self._texts) > _MOST_FILES:
            return None
        if problem.file not in self._texts:
            data = read_text_file(self._root, problem.file, _MAX_BYTES)
            text = "" if isinstance(data, Problem) else data.decode("utf-8", "replace")
            self._texts[problem.file] = text
        return line_of(self._texts[problem.file], problem.pointer)
