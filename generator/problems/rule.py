"""Rules: each is declared once, beside its check, and makes the Problems of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from generator.problems.messages import one_line
from generator.problems.problem import Problem, Severity, pointer


@dataclass(frozen=True)
class Rule:
    """Describe one rule.

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
