"""Limit how many Problems one file may have."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from generator.problems import Problem
from generator.problems.rule import blocking

TOO_MANY_PROBLEMS = blocking(
    "too-many-problems",
    "One file has so many problems that the rest of them is not listed.",
    "Correct those listed and run again.",
    "a definition with 5,000 unknown fields",
)


MAX_PROBLEMS = 1000
"""Problems listed for one file; nobody corrects more in one go."""


def limited(problems: Iterable[Problem], file: str) -> tuple[Problem, ...]:
    """Return the first MAX_PROBLEMS problems, and one that says that there are more."""
    listed = tuple(islice(problems, MAX_PROBLEMS + 1))
    if len(listed) <= MAX_PROBLEMS:
        return listed
    message = f"The file has more than {MAX_PROBLEMS} problems; the rest is not listed."
    return (*listed[:MAX_PROBLEMS], TOO_MANY_PROBLEMS.problem(file, message))
