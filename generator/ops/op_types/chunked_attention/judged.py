"""Cases of far factors that kernels of this op can be asked, and so solutions."""

from __future__ import annotations

from collections.abc import Sequence

from generator.ops.attention.judged import far_of_attention
from kernel_judge.definition import Case, Definition


def far_cases(definition: Definition, declared: Sequence[Case]) -> list[Case]:
    """Return the cases of far factors that kernels can be asked."""
    return far_of_attention(definition, declared)
