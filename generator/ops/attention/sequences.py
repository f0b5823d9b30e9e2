"""The sequences of an attention call: read from its inputs, cut, and laid out again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch

from generator.ops.attention.caches import switched
from generator.ops.attention.masks import mask_rows
from generator.ops.attention.variant import has_mask
from generator.ops.paging import (
    SPARE_PAGES,
    STALE,
    indptr,
    input_table,
    last_page_lengths,
    page_counts,
    page_table,
    query_starts,
    token_slots,
)
from kernel_judge.definition import Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import Inputs

# leading axes of queries, and of keys in pages and contiguous
_QUERIES = ("total_q", "batch_size")
_PAGES, _TOKENS = "num_pages", "total_kv"


@dataclass(frozen=True)
class OneSequence:
    """The queries and tokens of one sequence by input name.

    `queries` are [q_len, …], `tokens` [kv_len, …]; the last query is at the last token.
    `mask`, bool [q_len, kv_len], says which tokens a query sees, None by position.
    """

    queries: Mapping[str, torch.Tensor]
    tokens: Mapping[str, torch.Tensor]
    mask: torch.Tensor | None = None

    @property
    def q_len(self) -> int:
        """Return the number of queries."""
        return len(next(iter(self.queries.values())))

    @property
    def kv_len(self) -> int:
        """Return the number of tokens."""
        return len(next(iter(self.tokens.values())))

    def part(self, queries: slice, tokens: slice) -> OneSequence:
        """Return the sequence with only these queries and tokens."""
        return OneSequence(
            {name: value[queries] for name, value in self.queries.items()},
            {name: value[tokens] for name, value in self.tokens.items()},
            None if self.mask is None else self.mask[queries][:, tokens],
        )


Batch = list[OneSequence]


def is_paged(definition: Definition) -> bool:
    """Return whether the keys are in pages."""
    return "kv_indices" in definition.interface.inputs


def is_prefill(definition: Definition) -> bool:
    """Return whether a sequence may have several queries."""
    return "qo_indptr" in definition.interface.inputs


def sequences_of(definition: Definition, inputs: Inputs) -> Batch:
    """Return the sequences of a batch from its inputs."""
    starts = query_starts(inputs).tolist()
    if is_paged(definition):
        slots = token_slots(input_table(inputs), definition.axes["page_size"])
    else:
        bounds = inputs["kv_indptr"].tolist()
        slots = [torch.arange(bounds[i], bounds[i + 1]) for i in range(len(bounds) - 1)]
    queries = {name: inputs[name] for name in _over(definition, *_QUERIES)}
    tokens = {name: inputs[name] for name in _over(definition, _TOKENS)}
    for name in _over(definition, _PAGES):
        tokens[name] = switched(definition, inputs[name]).flatten(0, 1)
    masks: Sequence[torch.Tensor | None] = [None] * len(slots)
    if has_mask(definition):
        q_lens = [end - start for start, end in pairwise(starts)]
        shapes = [(q_len, len(own)) for q_len, own in zip(q_lens, slots, strict=True)]
        masks = mask_rows(inputs["custom_mask"], shapes)
    return [
        OneSequence(
            {name: value[starts[i] : starts[i + 1]] for name, value in queries.items()},
            {name: value[own] for name, value in tokens.items()},
            masks[i],
        )
        for i, own in enumerate(slots)
    ]


def _over(definition: Definition, *axes: str) -> list[str]:
    """Return the float inputs whose leading axis is one of `axes`."""
    return [
        name
        for name, spec in definition.interface.input_specs.items()
        if spec.shape and spec.shape[0] in axes and "float" in spec.dtype
    ]


def laid_out(definition: Definition, batch: Batch, common: Inputs, *key: str) -> Inputs:
    """Return the definition's inputs for a batch of sequences.

    `common` holds the inputs that no sequence owns: sm_scale, sinks, scales.
    `key` seeds the order of the pages. Slots without a token hold values STALE times
    larger than a token's, as in the op's own inputs.
    """
    q_lens = [one.q_len for one in batch]
    kv_lens = [one.kv_len for one in batch]
    inputs: Inputs = {**common, "qo_indptr": indptr(q_lens)}
    for name in batch[0].queries:
        inputs[name] = torch.cat([one.queries[name] for one in batch])
    if is_paged(definition):
        inputs |= _in_pages(definition, batch, kv_lens, Stream(*key))
    else:
        inputs["kv_indptr"] = indptr(kv_lens)
        for name in batch[0].tokens:
            inputs[name] = torch.cat([one.tokens[name] for one in batch])
    if has_mask(definition):
        masks = [one.mask.flatten() for one in batch if one.mask is not None]
        inputs["custom_mask"] = torch.cat(masks)
    return {name: inputs[name] for name in definition.interface.inputs}


def _in_pages(
    definition: Definition, batch: Batch, kv_lens: Sequence[int], stream: Stream
) -> Inputs:
    page_size = definition.axes["page_size"]
    pages = sum(page_counts(kv_lens, page_size)) + SPARE_PAGES
    table = page_table(kv_lens, page_size, pages, stream)
    inputs: Inputs = {
        "kv_indptr": table.indptr,
        "kv_indices": table.indices,
        "kv_last_page_len": table.last_page_len,
    }
    slots = torch.cat(token_slots(table, page_size))
    is_stale = torch.ones(pages * page_size, dtype=torch.bool)
    is_stale[slots] = False
    for name, first in batch[0].tokens.items():
        rest = first.shape[1:]
        stale = stream.child(name).values((int(is_stale.sum()), *rest)) * STALE
        cache = torch.empty(pages * page_size, *rest, dtype=first.dtype)
        cache[is_stale] = stale.to(first.dtype)
        cache[slots] = torch.cat([one.tokens[name] for one in batch])
        cache = cache.view(pages, page_size, *rest)
        inputs[name] = switched(definition, cache).contiguous()
    return inputs


def with_keys(
    inputs: Mapping[str, Any],
    page_size: int,
    sequences: Sequence[int],
    lengths: Sequence[int],
) -> dict[str, Any]:
    """Return the page table inputs of some sequences, each cut to its first keys.

    `sequences` are numbers of sequences of the batch, `lengths` the keys to keep.
    """
    starts = inputs["kv_indptr"].tolist()
    counts = page_counts(lengths, page_size)
    pages = [
        inputs["kv_indices"][starts[sequence] : starts[sequence] + count]
        for sequence, count in zip(sequences, counts, strict=True)
    ]
    table: dict[str, Any] = {
        "kv_indptr": indptr(counts),
        "kv_indices": torch.cat(pages),
    }
    if "kv_last_page_len" in inputs:
        table["kv_last_page_len"] = last_page_lengths(lengths, page_size)
    return table


def one_query_each(
    inputs: Mapping[str, Any],
    page_size: int | None,
    sequence: int,
    counts: Sequence[int],
) -> dict[str, Any]:
    """Return inputs in which each query of one sequence is a sequence of its own.

    Query i sees the first `counts[i]` keys. `page_size` None means contiguous keys.
    """
    first, end = inputs["qo_indptr"][sequence : sequence + 2].tolist()
    queries = [name for name in ("q", "q_nope", "q_pe") if name in inputs]
    single = {
        **inputs,
        **{name: inputs[name][first:end] for name in queries},
        "qo_indptr": torch.arange(len(counts) + 1, dtype=torch.int32),
    }
    if page_size is not None:
        return single | with_keys(inputs, page_size, [sequence] * len(counts), counts)
    start = int(inputs["kv_indptr"][sequence])
    rows = torch.cat([torch.arange(start, start + count) for count in counts])
    single["kv_indptr"] = indptr(counts)
    for name in ("k", "v"):
        single[name] = inputs[name][rows]
    return single
