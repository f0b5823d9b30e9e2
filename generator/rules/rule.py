"""What a rule is, and how one is declared."""

from __future__ import annotations

from dataclasses import dataclass

from generator.problems import Severity


@dataclass(frozen=True)
class Rule:
    """Declare one rule.

    `example` is what it would find. `blocks` says that a definition which breaks it
    can't be rendered: the rendered file would not be valid Python, or would test
    something else than what was meant.
    """

    id: str
    severity: Severity
    explanation: str
    fix: str
    example: str
    blocks: bool = False


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
