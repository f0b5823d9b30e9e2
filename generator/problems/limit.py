"""Say which file Problems are of, and limit how many one file may have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from generator.problems import Problem
from generator.problems.rule import blocking

TOO_MANY_PROBLEMS = blocking("""too-many-problems: One file has over 1,000 problems;
    only the first 1,000 are listed.
    Fix: Correct those listed and run again.
    Finds: a definition with 5,000 unknown fields""")

MAX_PROBLEMS = 1000
"""Problems listed for one file; nobody corrects more in one go."""


def in_file(
    problems: Iterable[Problem], file: str, line: int | None = None
) -> Iterator[Problem]:
    """Yield the problems with their file; those without a line get `line`."""
    for problem in problems:
        if not problem.file:
            known = line if problem.line is None else problem.line
            problem = replace(problem, file=file, line=known)
        yield problem


def limited(
    problems: Iterable[Problem], file: str, line: int | None = None
) -> tuple[Problem, ...]:
    """Return the first MAX_PROBLEMS problems, and one that says that there are more."""
    listed = tuple(islice(in_file(problems, file, line), MAX_PROBLEMS + 1))
    if len(listed) <= MAX_PROBLEMS:
        return listed
    message = f"The file has more than {MAX_PROBLEMS} problems; the rest is not listed."
    return (*listed[:MAX_PROBLEMS], TOO_MANY_PROBLEMS.problem(file, message))
