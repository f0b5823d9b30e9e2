"""Paged key-value caches: page tables for given lengths, and what the slots hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .stream import Stream

# pages that no sequence owns: reading one is a fault that shows
SPARE_PAGES = 3
# slots without a token hold values this many times larger than a token's
STALE = 16.0


@dataclass(frozen=True)
class PageTable:
    """Say which pages hold a batch's tokens: int32 tensors, as an interface has them.

    indptr [batch + 1], indices [indptr[-1]], last_page_len [batch]. The last page of an
    empty sequence does not exist; its last_page_len is 1 and must be ignored.
    """

    indptr: torch.Tensor
    indices: torch.Tensor
    last_page_len: torch.Tensor


def page_counts(kv_lens: Sequence[int], page_size: int) -> list[int]:
    """Return the number of pages of each sequence."""
    return [-(-length // page_size) for length in kv_lens]


def indptr(lengths: Sequence[int]) -> torch.Tensor:
    """Return where each sequence begins and the last one ends: int32 [batch + 1]."""
    ends = torch.tensor([0, *lengths], dtype=torch.int64).cumsum(0)
    return ends.to(torch.int32)


def page_table(
    kv_lens: Sequence[int], page_size: int, num_pages: int, stream: Stream
) -> PageTable:
    """Return a table whose pages are shuffled over the whole cache."""
    counts = page_counts(kv_lens, page_size)
    pages = stream.child("pages").permutation(num_pages)[: sum(counts)]
    last = [
        max(n - (c - 1) * page_size, 1) for n, c in zip(kv_lens, counts, strict=True)
    ]
    last = [n if c else 1 for n, c in zip(last, counts, strict=True)]
    return PageTable(
        indptr(counts), pages.to(torch.int32), torch.tensor(last, dtype=torch.int32)
    )


def input_table(inputs: Mapping[str, Any]) -> PageTable:
    """Return the page table among an op's inputs.

    Interfaces of page size 1 have no kv_last_page_len: there every page is full.
    """
    starts = inputs["kv_indptr"]
    last = inputs.get("kv_last_page_len", torch.ones_like(starts[1:]))
    return PageTable(starts, inputs["kv_indices"], last)


def query_starts(inputs: Mapping[str, Any]) -> torch.Tensor:
    """Return where the queries of each sequence begin: int32 [batch + 1].

    Decode has no qo_indptr: there every sequence has one query.
    """
    starts: torch.Tensor = inputs["kv_indptr"]
    one_each = torch.arange(len(starts), dtype=torch.int32, device=starts.device)
    starts = inputs.get("qo_indptr", one_each)
    return starts


def kv_lengths(table: PageTable, page_size: int) -> list[int]:
    """Return the number of tokens of each sequence of a page table."""
    counts = table.indptr.diff().tolist()
    last = table.last_page_len.tolist()
    return [
        (c - 1) * page_size + n if c else 0 for c, n in zip(counts, last, strict=True)
    ]


def token_slots(table: PageTable, page_size: int) -> list[torch.Tensor]:
    """Return, for each sequence, its tokens' slots page·page_size + offset: int64."""
    starts = table.indptr.tolist()
    slots = []
    for sequence, length in enumerate(kv_lengths(table, page_size)):
        token = torch.arange(length, device=table.indices.device)
        page = table.indices[starts[sequence] + token // page_size].to(torch.int64)
        slots.append(page * page_size + token % page_size)
    return slots


def cache(
    shape: Sequence[int], table: PageTable, stream: Stream, dtype: torch.dtype
) -> torch.Tensor:
    """Return a cache [num_pages, page_size, …] that is loud where no token lies.

    Spare pages and the rest of each last page hold finite values STALE times larger
    than a token's, as a reused cache may: whoever reads one is far off.
    """
    num_pages, page_size = shape[:2]
    values = stream.values(shape)
    stale = torch.ones(num_pages * page_size, dtype=torch.bool)
    for slots in token_slots(table, page_size):
        stale[slots] = False
    values.view(num_pages * page_size, -1)[stale] *= STALE
    return values.to(dtype)
