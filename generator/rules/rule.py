"""What a rule is, and how one is declared."""

from __future__ import annotations

from dataclasses import dataclass

from generator.problems import Severity


@dataclass(frozen=True)
class Rule:
    """Declare one rule.

    `blocks` says that a definition which breaks it can't be rendered: the rendered
    file would not be valid Python, or would test something else than what was meant.
    """

    id: str
    severity: Severity
    explanation: str
    fix: str
    blocks: bool = False


def blocking(id: str, explanation: str, fix: str) -> Rule:
    """Declare an error that keeps a definition from being rendered."""
    return Rule(id, Severity.ERROR, explanation, fix, blocks=True)


def error(id: str, explanation: str, fix: str) -> Rule:
    """Declare an error."""
    return Rule(id, Severity.ERROR, explanation, fix)


def warning(id: str, explanation: str, fix: str) -> Rule:
    """Declare a warning."""
    return Rule(id, Severity.WARNING, explanation, fix)
