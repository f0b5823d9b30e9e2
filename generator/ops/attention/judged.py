"""A case that only solutions are asked: a batch of decodes in which no sequence has a key.

A kernel may divide its work by the number of pages, or launch no program at all. Production
kernels are not asked: FlashInfer's planning of such a batch is not part of its contract.
"""

from __future__ import annotations

from generator.ops.attention.cases import paged_case
from generator.ops.attention.sequences import is_prefill
from kernel_judge.definition import Case, Definition

_SEQUENCES = 5


def empty_batch(definition: Definition) -> list[Case]:
    """Return the case of decodes without a key; none of a prefill."""
    if is_prefill(definition):
        return []
    page_size = definition.axes["page_size"]
    lengths = [0] * _SEQUENCES
    return [paged_case("no-keys", "small", [1] * _SEQUENCES, lengths, page_size)]
