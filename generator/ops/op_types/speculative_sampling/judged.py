"""Cases that only solutions are asked: what follows a chain has a law of 8,193 tokens.

`sampling.judged` says what its draws tell: here those that follow an accepted draft.
"""

from __future__ import annotations

from generator.ops.op_types.speculative_sampling.chains import chain_case
from kernel_judge.definition import Case, Definition


def cases(definition: Definition) -> list[Case]:
    """Return the case of deep laws; none where the vocabulary is smaller than these."""
    if definition.axes["vocab_size"] <= 8192:
        return []
    # as probable in the target as in the draft: always accepted
    accepted = (("steps", 2, "steps"),)
    chains = ((accepted, "deep", 24), (accepted, "flat", 8))
    return [chain_case("deep-laws", "medium", 48, chains)]
