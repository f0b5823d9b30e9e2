"""Problems of a dataset as values, the rules that make them, and what ends a command.

A stage returns Problems and neither drops nor prints them. The command decides which
are fatal and how they are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from enum import Enum
from functools import partial
from itertools import islice
from typing import Any

from generator.problems.messages import one_line


class Failure(Exception):
    """A failure in one line: what can't be read or done, and what to do about it.

    A command that meets it prints the line and exits with status 2.
    """


class Severity(str, Enum):
    """The severity of a Problem: an error makes a command exit 1."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Problem:
    """One problem: its place, a message, and how to fix it.

    `file` is relative to the dataset's root where the file lies under it. `pointer`
    is an RFC 6901 JSON pointer, empty for the whole file. `line` counts from 1 and is
    a line of the definition's `reference`; a line of the file itself where the file is
    JSON Lines or is not valid JSON. `str()` is one line.
    """

    rule: str
    severity: Severity
    file: str
    pointer: str
    message: str
    fix: str
    line: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return {**asdict(self), "severity": self.severity.value}

    def __str__(self) -> str:
        place = one_line(f"{self.file}#{self.pointer}" if self.pointer else self.file)
        line = f" line {self.line}" if self.line is not None else ""
        return (
            f"{place}{line}: {self.severity.value}: {self.message} "
            f"[{self.rule}] Fix: {self.fix}"
        )


def pointer(tokens: Iterable[str | int]) -> str:
    """Return the JSON pointer (RFC 6901) to where `tokens` lead; the root's is empty."""
    return "".join(
        "/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens
    )


def has_errors(problems: Iterable[Problem]) -> bool:
    """Return whether any Problem is an error."""
    return any(problem.severity is Severity.ERROR for problem in problems)


@dataclass(frozen=True)
class Rule:
    """One rule: its id, its severity, what it says and how to fix it.

    `example` is something that the rule finds. `blocks` says that a definition which
    breaks the rule can't be rendered: the rendered file would not be valid Python, or
    would test something else than what was meant. Ids are an interface, since people
    filter by them: add one, never rename one.
    """

    severity: Severity
    id: str
    explanation: str
    fix: str
    example: str
    blocks: bool = False

    def problem(
        self,
        file: str,
        message: str,
        *,
        pointer: str = "",
        line: int | None = None,
        fix: str | None = None,
    ) -> Problem:
        """Return a Problem of this rule.

        `fix` replaces the rule's general one where the place allows a better one.
        Message and fix are put on one line, whatever the names in them.
        """
        return Problem(
            rule=self.id,
            severity=self.severity,
            file=file,
            pointer=pointer,
            message=one_line(message, 1000),
            fix=one_line(self.fix if fix is None else fix, 1000),
            line=line,
        )

    def at(
        self,
        message: str,
        *path: str | int,
        line: int | None = None,
        fix: str | None = None,
    ) -> Problem:
        """Return a Problem at a place of the file that is being checked.

        A check does not know the file's name: `limit.in_file` puts it in.
        """
        return self.problem("", message, pointer=pointer(path), line=line, fix=fix)


def _declared(severity: Severity, text: str, *, blocks: bool = False) -> Rule:
    """Return the rule of a text `id: explanation Fix: … Finds: …`, lines joined."""
    id, _, text = " ".join(text.split()).partition(": ")
    explanation, _, text = text.partition(" Fix: ")
    fix, _, example = text.partition(" Finds: ")
    return Rule(severity, id, explanation, fix, example, blocks)


note = partial(_declared, Severity.NOTE)
"""Declare what is worth knowing, and never a reason to fail."""
warning = partial(_declared, Severity.WARNING)
error = partial(_declared, Severity.ERROR)
blocking = partial(_declared, Severity.ERROR, blocks=True)
"""Declare an error that keeps a definition from being rendered."""

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
