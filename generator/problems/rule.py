"""Rules: each is declared once, beside its check, and makes the Problems of it."""

from __future__ import annotations

from dataclasses import dataclass

from generator.problems.messages import one_line
from generator.problems.pointer import pointer
from generator.problems.problem import Problem, Severity


@dataclass(frozen=True)
class Rule:
    """Describe one rule.

    `example` is something that the rule finds. `blocks` says that a definition which
    breaks the rule can't be rendered: the rendered file would not be valid Python, or
    would test something else than what was meant. Ids are an interface, since people
    filter by them: add one, never rename one.
    """

    id: str
    severity: Severity
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


def blocking(id: str, explanation: str, fix: str, example: str) -> Rule:
    """Declare an error that keeps a definition from being rendered."""
    return Rule(id, Severity.ERROR, explanation, fix, example, blocks=True)


def error(id: str, explanation: str, fix: str, example: str) -> Rule:
    """Declare an error."""
    return Rule(id, Severity.ERROR, explanation, fix, example)


def warning(id: str, explanation: str, fix: str, example: str) -> Rule:
    """Declare a warning."""
    return Rule(id, Severity.WARNING, explanation, fix, example)


def note(id: str, explanation: str, fix: str, example: str) -> Rule:
    """Declare a note: worth knowing, never a reason to fail."""
    return Rule(id, Severity.NOTE, explanation, fix, example)
