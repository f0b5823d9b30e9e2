"""Paged key-value caches: page tables, and the values of their slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kernel_judge.inputs.seeded_inputs import Stream

# pages that no sequence owns, so that reading one shows
SPARE_PAGES = 3
# factor of the values in slots without a token
STALE = 16.0


@dataclass(frozen=True)
class PageTable:
    """The pages of the sequences of a batch, as the interfaces have them.

    indptr int32 [batch_size + 1], indices int32 [indptr[-1]], last_page_len int32
    [batch_size]. An empty sequence has no pages; its last_page_len is 1 and ignored.
    """

    indptr: torch.Tensor
    indices: torch.Tensor
    last_page_len: torch.Tensor

    def on_cpu(self) -> PageTable:
        """Return the same table on the CPU, where its lengths are read."""
        return PageTable(
            self.indptr.cpu(), self.indices.cpu(), self.last_page_len.cpu()
        )


def page_counts(kv_lens: Sequence[int], page_size: int) -> list[int]:
    """Return the number of pages of each sequence."""
    return [-(-length // page_size) for length in kv_lens]


def indptr(lengths: Sequence[int]) -> torch.Tensor:
    """Return the starts of sequences and the end of the last: int32 [batch_size + 1]."""
    ends = torch.tensor([0, *lengths], dtype=torch.int64).cumsum(0)
    return ends.to(torch.int32)


def page_table(
    kv_lens: Sequence[int], page_size: int, num_pages: int, stream: Stream
) -> PageTable:
    """Return a table for these lengths, its pages in random order over the cache."""
    counts = page_counts(kv_lens, page_size)
    pages = stream.child("pages").permutation(num_pages)[: sum(counts)]
    last = last_page_lengths(kv_lens, page_size)
    return PageTable(indptr(counts), pages.to(torch.int32), last)


def last_page_lengths(kv_lens: Sequence[int], page_size: int) -> torch.Tensor:
    """Return the tokens in each last page, 1 if there is none: int32 [batch_size]."""
    lengths = [(n - 1) % page_size + 1 if n else 1 for n in kv_lens]
    return torch.tensor(lengths, dtype=torch.int32)


def input_table(inputs: Mapping[str, Any]) -> PageTable:
    """Return the page table of an op's inputs.

    Interfaces of page size 1 have no kv_last_page_len: every page is full.
    """
    starts = inputs["kv_indptr"]
    last = inputs.get("kv_last_page_len", torch.ones_like(starts[1:]))
    return PageTable(starts, inputs["kv_indices"], last)


def query_starts(inputs: Mapping[str, Any]) -> torch.Tensor:
    """Return the first query of each sequence and their number: int32 [batch_size + 1].

    Interfaces of decode have no qo_indptr: every sequence has one query.
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


def key_lengths(inputs: Mapping[str, Any], page_size: int | None) -> list[int]:
    """Return the number of keys of each sequence; page_size None: contiguous keys."""
    if page_size is None:
        lengths: list[int] = inputs["kv_indptr"].diff().tolist()
        return lengths
    return kv_lengths(input_table(inputs), page_size)


def token_slots(table: PageTable, page_size: int) -> list[torch.Tensor]:
    """Return each sequence's slots, page · page_size + offset: int64 [kv_len] each."""
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
    """Return a cache [num_pages, page_size, …], loud in slots without a token.

    Spare pages and the rest of each last page hold finite values STALE times larger
    than a token's, as a reused cache may: a kernel that reads one is far off.
    """
    num_pages, page_size = shape[:2]
    values = stream.values(shape, dtype=dtype)
    factors = torch.full((num_pages * page_size, 1), STALE, dtype=dtype)
    slots = token_slots(table, page_size)
    factors[torch.cat(slots) if slots else []] = 1.0
    # by a power of two: as before the values were rounded
    values.view(num_pages * page_size, -1).mul_(factors)
    return values
