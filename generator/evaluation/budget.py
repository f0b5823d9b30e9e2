"""The seconds that all calls of a solution have together."""

from __future__ import annotations

from generator.evaluation.rounds import EvaluationRounds
from generator.evaluation.session import Allowed

_CALLS_OF_A_RELATION = 4
_CALLS_IN_A_TIMEOUT = 20.0


def budget_of(allowed: Allowed, asked: EvaluationRounds) -> float:
    """Return the seconds for all calls of a solution: each may take its share of one."""
    calls = sum(one.calls() for _, rounds in asked.rounds for one in rounds)
    calls += sum(len(rounds) > 1 for _, rounds in asked.rounds)
    calls += _CALLS_OF_A_RELATION * len(asked.relations)
    return allowed.call_seconds * (2.0 + calls / _CALLS_IN_A_TIMEOUT)
