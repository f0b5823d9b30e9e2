"""The sequences of an attention call, taken out of its inputs and laid out anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .definition import Definition
from .paging import (
    SPARE_PAGES,
    STALE,
    indptr,
    input_table,
    page_counts,
    page_table,
    query_starts,
    token_slots,
)
from .stream import Stream
from .trial import Inputs

# the leading axes of queries and of keys in the interfaces of decode and of prefill
_QUERIES = ("total_q", "batch_size")
_PAGES, _TOKENS = "num_pages", "total_kv"


@dataclass(frozen=True)
class OneSequence:
    """Hold one sequence's queries and keys, each by the name of its input.

    A tensor has one row a query or one a token; the last query stands at the last token.
    """

    queries: Mapping[str, torch.Tensor]
    tokens: Mapping[str, torch.Tensor]

    @property
    def q_len(self) -> int:
        """Return the number of queries."""
        return len(next(iter(self.queries.values())))

    @property
    def kv_len(self) -> int:
        """Return the number of tokens."""
        return len(next(iter(self.tokens.values())))

    def part(self, queries: slice, tokens: slice) -> OneSequence:
        """Return the sequence of some of the queries and some of the tokens."""
        return OneSequence(
            {name: value[queries] for name, value in self.queries.items()},
            {name: value[tokens] for name, value in self.tokens.items()},
        )


Batch = list[OneSequence]


def is_paged(definition: Definition) -> bool:
    """Return whether keys lie in pages."""
    return "kv_indices" in definition.interface.inputs


def is_prefill(definition: Definition) -> bool:
    """Return whether a sequence may have several queries."""
    return "qo_indptr" in definition.interface.inputs


def sequences_of(definition: Definition, inputs: Inputs) -> Batch:
    """Return the sequences that a call's inputs hold."""
    starts = query_starts(inputs).tolist()
    if is_paged(definition):
        slots = token_slots(input_table(inputs), definition.axes["page_size"])
    else:
        bounds = inputs["kv_indptr"].tolist()
        slots = [torch.arange(bounds[i], bounds[i + 1]) for i in range(len(bounds) - 1)]
    queries = {name: inputs[name] for name in _over(definition, *_QUERIES)}
    tokens = {name: inputs[name] for name in _over(definition, _TOKENS)}
    for name in _over(definition, _PAGES):
        tokens[name] = inputs[name].flatten(0, 1)
    return [
        OneSequence(
            {name: value[starts[i] : starts[i + 1]] for name, value in queries.items()},
            {name: value[own] for name, value in tokens.items()},
        )
        for i, own in enumerate(slots)
    ]


def _over(definition: Definition, *axes: str) -> list[str]:
    """Return the inputs of floating numbers whose leading axis is one of some."""
    return [
        name
        for name, spec in definition.interface.input_specs.items()
        if spec.shape and spec.shape[0] in axes and "float" in spec.dtype
    ]


def laid_out(definition: Definition, batch: Batch, sm_scale: Any, *key: str) -> Inputs:
    """Return a definition's inputs for sequences, on pages that a key shuffles.

    Slots without a token are STALE times larger than a token, as where they were made.
    """
    q_lens = [one.q_len for one in batch]
    kv_lens = [one.kv_len for one in batch]
    made: Inputs = {"sm_scale": sm_scale, "qo_indptr": indptr(q_lens)}
    for name in batch[0].queries:
        made[name] = torch.cat([one.queries[name] for one in batch])
    if is_paged(definition):
        made |= _in_pages(definition, batch, kv_lens, Stream(*key))
    else:
        made["kv_indptr"] = indptr(kv_lens)
        for name in batch[0].tokens:
            made[name] = torch.cat([one.tokens[name] for one in batch])
    return {name: made[name] for name in definition.interface.inputs}


def _in_pages(
    definition: Definition, batch: Batch, kv_lens: Sequence[int], stream: Stream
) -> Inputs:
    page_size = definition.axes["page_size"]
    pages = sum(page_counts(kv_lens, page_size)) + SPARE_PAGES
    table = page_table(kv_lens, page_size, pages, stream)
    made: Inputs = {
        "kv_indptr": table.indptr,
        "kv_indices": table.indices,
        "kv_last_page_len": table.last_page_len,
    }
    slots = torch.cat(token_slots(table, page_size))
    for name, first in batch[0].tokens.items():
        shape = (pages * page_size, *first.shape[1:])
        cache = (stream.child(name).values(shape) * STALE).to(first.dtype)
        cache[slots] = torch.cat([one.tokens[name] for one in batch])
        made[name] = cache.view(pages, page_size, *first.shape[1:])
    return made
