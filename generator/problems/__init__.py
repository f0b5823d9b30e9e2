"""Problems as values, the rules that make them, and helpers for their messages."""

from generator.problems.problem import Problem, Severity, has_errors

__all__ = ["Problem", "Severity", "has_errors"]
