"""A case that only solutions are asked: what exceeds the exponential of float32."""

from __future__ import annotations

from kernel_judge.definition import Case, Definition


def cases(definition: Definition) -> list[Case]:
    """Return norms of about 100 before a SiLU: e^x / (1 + e^x) is NaN there."""
    if "activation" not in definition.constants:
        return []
    return [Case("open-gates", "small", {"batch_size": 6}, {"weight": 200.0})]
