"""Page tables and caches against loops over single tokens."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from generator.ops.paging import (
    SPARE_PAGES,
    STALE,
    PageTable,
    cache,
    indptr,
    input_table,
    kv_lengths,
    page_counts,
    page_table,
    query_starts,
    token_slots,
)
from kernel_judge.inputs.seeded_inputs import Stream

KV_LENS = (5, 0, 8, 1, 0, 9, 4, 40)
PAGE_SIZES = [1, 4, 64]


def made(page_size: int, kv_lens=KV_LENS) -> tuple[PageTable, int]:
    num_pages = sum(page_counts(kv_lens, page_size)) + SPARE_PAGES
    return page_table(kv_lens, page_size, num_pages, Stream("table")), num_pages


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_a_table_has_distinct_pages_and_leaves_some_to_nobody(page_size):
    table, num_pages = made(page_size)
    pages = table.indices.tolist()
    assert len(set(pages)) == len(pages) == num_pages - SPARE_PAGES
    assert set(pages) < set(range(num_pages))
    assert SPARE_PAGES >= 1


def test_pages_are_shuffled_and_not_contiguous():
    pages = made(1)[0].indices.tolist()
    assert pages != sorted(pages)
    steps = {b - a for a, b in pairwise(pages)}
    assert len(steps) > 5


def test_the_table_is_int32_as_the_interfaces_have_it():
    table, _ = made(4)
    dtypes = {table.indptr.dtype, table.indices.dtype, table.last_page_len.dtype}
    assert dtypes == {torch.int32}
    assert indptr([2, 0, 3]).dtype == torch.int32


def test_indptr_and_last_page_len_of_a_small_example():
    table, _ = made(4)
    assert page_counts(KV_LENS, 4) == [2, 0, 2, 1, 0, 3, 1, 10]
    assert table.indptr.tolist() == [0, 2, 2, 4, 5, 5, 8, 9, 19]
    # 1 for the empty ones, which have no last page; 4 where the last page is full
    assert table.last_page_len.tolist() == [1, 1, 4, 1, 1, 1, 4, 4]


def test_indptr_of_no_sequences_is_one_zero():
    assert indptr([]).tolist() == [0]
    assert indptr([0, 0]).tolist() == [0, 0, 0]


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_lengths_are_read_back(page_size):
    assert kv_lengths(made(page_size)[0], page_size) == list(KV_LENS)


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_token_slots_are_those_of_a_walk_over_the_pages(page_size):
    table, _ = made(page_size)
    starts, pages = table.indptr.tolist(), table.indices.tolist()
    slots = token_slots(table, page_size)
    assert len(slots) == len(KV_LENS)
    for b, kv_len in enumerate(KV_LENS):
        walked = []
        for page in pages[starts[b] : starts[b + 1]]:
            walked += [page * page_size + offset for offset in range(page_size)]
        assert slots[b].tolist() == walked[:kv_len]
        assert slots[b].dtype == torch.int64


def test_what_an_empty_sequence_says_of_its_last_page_is_ignored():
    table = PageTable(torch.tensor([0, 1, 1]), torch.tensor([2]), torch.tensor([3, 99]))
    assert kv_lengths(table, 4) == [3, 0]
    assert [s.tolist() for s in token_slots(table, 4)] == [[8, 9, 10], []]


def test_an_interface_of_page_size_1_has_full_pages():
    starts, pages = torch.tensor([0, 2, 5]), torch.tensor([4, 1, 0, 2, 3])
    table = input_table({"kv_indptr": starts, "kv_indices": pages})
    assert table.last_page_len.tolist() == [1, 1]
    assert kv_lengths(table, 1) == [2, 3]
    last = torch.tensor([3, 4])
    inputs = {"kv_indptr": starts, "kv_indices": pages, "kv_last_page_len": last}
    assert input_table(inputs).last_page_len is last


def test_decode_has_one_query_a_sequence():
    starts = torch.tensor([0, 7, 7, 9], dtype=torch.int32)
    assert query_starts({"kv_indptr": starts}).tolist() == [0, 1, 2, 3]
    assert query_starts({"kv_indptr": starts}).dtype == torch.int32
    own = torch.tensor([0, 4, 4, 5])
    assert query_starts({"kv_indptr": starts, "qo_indptr": own}) is own


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_stale_slots_are_loud_and_all_others_are_ordinary(page_size):
    table, num_pages = made(page_size)
    shape = (num_pages, page_size, 2, 16)
    filled = cache(shape, table, Stream("k"), torch.float32)
    plain = Stream("k").values(shape)
    owned = {s for slots in token_slots(table, page_size) for s in slots.tolist()}
    flat, flat_plain = filled.flatten(0, 1), plain.flatten(0, 1)
    stale = [s for s in range(num_pages * page_size) if s not in owned]
    assert len(stale) >= SPARE_PAGES * page_size
    assert torch.equal(flat[sorted(owned)], flat_plain[sorted(owned)])
    assert torch.equal(flat[stale], STALE * flat_plain[stale])
    assert STALE >= 8
    assert bool(torch.isfinite(filled).all())


def test_a_cache_has_the_dtype_asked_for():
    table, num_pages = made(4)
    filled = cache((num_pages, 4, 3), table, Stream("k"), torch.bfloat16)
    assert filled.dtype == torch.bfloat16
    assert tuple(filled.shape) == (num_pages, 4, 3)
