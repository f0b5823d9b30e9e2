"""A case that only solutions are asked: gates whose exponential float32 has no number for."""

from __future__ import annotations

from kernel_judge.definition import Case, Definition


def cases(definition: Definition) -> list[Case]:
    """Return gates of about 120: a sigmoid as e^x / (1 + e^x) is NaN there."""
    return [Case("open-gates", "small", {"batch_size": 3}, {"gate": 120.0})]
