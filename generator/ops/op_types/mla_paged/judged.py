"""Cases that only solutions are asked."""

from __future__ import annotations

from generator.ops.attention.judged import of_solutions
from kernel_judge.definition import Case, Definition


def cases(definition: Definition) -> list[Case]:
    """Return the decodes in which no sequence has a key, or each has few."""
    return of_solutions(definition)
