"""Problems of a dataset, as values.

A stage returns Problems and neither drops nor prints them. The command decides which
are fatal and how they are shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from generator.problems.messages import one_line


class Severity(str, Enum):
    """How much a Problem matters: an error makes a command exit 1."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Problem:
    """Describe one problem: its place, a message, and how to fix it.

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
