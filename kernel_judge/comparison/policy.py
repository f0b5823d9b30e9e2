"""Comparing outputs that have more than one right value: indices with ties, samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from kernel_judge.comparison.compare import Comparison
from kernel_judge.definition import Case, Definition


@dataclass(frozen=True)
class Question:
    """Context of a comparison for a policy, beside the two values.

    `inputs` are the trial's, on the CPU; nobody writes to these. `source` is `oracle`,
    or a provider with its backend (`flashinfer/fa2`). `other` is the second source
    where two are held against each other, None where it is the reference.
    """

    definition: Definition
    case: Case
    inputs: Mapping[str, Any]
    source: str
    other: str | None = None


class Policy(Protocol):
    """A way of its own to judge one output of an op_type; named in its POLICIES."""

    def judge(self, actual: Any, expected: Any, question: Question) -> Comparison:
        """Return the verdict on a reference's output held against a source's."""


@runtime_checkable
class Repeating(Protocol):
    """A policy that needs more than one call of `run()` and of a provider: more draws."""

    def calls(self, answer: Any, case: Case) -> int:
        """Return how often to call who gave this answer; the answers are joined."""
