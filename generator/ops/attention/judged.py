"""Cases of decodes that only solutions are asked: no sequence has a key, or each has few.

A kernel may divide its work by the number of pages, or launch no program at all. Production
kernels are not asked: FlashInfer's planning of such a batch is not part of its contract.

Of few keys with large logits one often outweighs all others by more than 2^128, at any
place: whoever takes the largest logit of some keys for that of all overflows float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from generator.ops.attention.cases import logit_params, paged_case
from generator.ops.attention.sequences import is_prefill
from kernel_judge.definition import Case, Definition

_SEQUENCES = 5
_FEW = (*range(4, 12), *range(4, 12), *range(4, 12))


def of_solutions(definition: Definition) -> list[Case]:
    """Return the cases of decodes without a key and with few; none of a prefill."""
    if is_prefill(definition):
        return []
    page_size = definition.axes["page_size"]

    def decodes(name: str, lengths: Sequence[int]) -> Case:
        return paged_case(name, "small", [1] * len(lengths), lengths, page_size)

    few = decodes("extreme-logits-of-few", _FEW)
    extreme = logit_params("extreme-logits")
    return [
        decodes("no-keys", [0] * _SEQUENCES),
        replace(few, params={**few.params, **extreme}),
    ]
