"""A condition under which a solution was called, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

GRAPH, STREAM, STRIDED = "graph", "stream", "strided"
COMPILE, BATCH, SOAK = "compile", "batch", "soak"
NAMES = (GRAPH, STREAM, STRIDED, COMPILE, BATCH, SOAK)
OF_CUDA = (GRAPH, STREAM)
"""Conditions that need a GPU."""
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")
"""compute-sanitizer's tools: each is a condition of a GPU, `broken` by a finding."""

HOLDS, BROKEN, UNSUPPORTED, SKIPPED = "holds", "broken", "unsupported", "skipped"
"""All calls were right; one was wrong; it says no, and goes on; it was not asked."""


@dataclass(frozen=True)
class Condition:
    """The verdict on one condition and the reason.

    `details` are figures of the condition, or its parts with `yes` or `no`.
    """

    verdict: str
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)
