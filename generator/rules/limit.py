"""Keep a hostile file from producing millions of Problems."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from generator.problems import Problem
from generator.rules.table import finding

MAX_PROBLEMS = 1000
"""Problems listed for one file; a person corrects a few hundred in one go at most."""


def limited(problems: Iterable[Problem], file: str) -> tuple[Problem, ...]:
    """Return the first MAX_PROBLEMS problems, and one more that says where it cut."""
    listed = tuple(islice(problems, MAX_PROBLEMS + 1))
    if len(listed) <= MAX_PROBLEMS:
        return listed
    message = f"The file has more than {MAX_PROBLEMS} problems; the rest is not listed."
    return (*listed[:MAX_PROBLEMS], finding("too-many-problems", file, message))
