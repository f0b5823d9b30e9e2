"""Cases that only solutions are asked."""

from __future__ import annotations

from collections.abc import Sequence

from generator.ops.attention.judged import far_of_attention, of_solutions
from kernel_judge.definition import Case, Definition


def cases(definition: Definition) -> list[Case]:
    """Return the decodes without a key and with few, and those of smallest codes."""
    return of_solutions(definition)


def far_cases(definition: Definition, declared: Sequence[Case]) -> list[Case]:
    """Return the cases of far factors that kernels can be asked."""
    return far_of_attention(definition, declared)
