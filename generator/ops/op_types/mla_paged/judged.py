"""Cases that only solutions are asked."""

from __future__ import annotations

from generator.ops.attention.judged import of_solutions
from kernel_judge.definition import Case, Definition


def cases(definition: Definition) -> list[Case]:
    """Return the decodes without a key and with few, and those of smallest codes."""
    return of_solutions(definition)
