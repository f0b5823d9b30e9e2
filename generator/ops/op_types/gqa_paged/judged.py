"""Cases that only solutions are asked."""

from __future__ import annotations

from generator.ops.attention.judged import empty_batch
from kernel_judge.definition import Case, Definition


def cases(definition: Definition) -> list[Case]:
    """Return the decodes in which no sequence has a key."""
    return empty_batch(definition)
