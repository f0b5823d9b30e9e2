"""The paged attention references against loops over single keys in float64.

Every slot that no sequence owns holds NaN, so that reading one shows.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from itertools import accumulate

import pytest
import torch

from tests.builders import REFERENCES, run_of

SM_SCALE = 0.37
PAGE_SIZES = [1, 4]
# (queries, keys) of each sequence: lengths around a page, no keys, no queries,
# neither, more queries than keys, the first and the last being ordinary.
RAGGED = [(3, 7), (2, 0), (0, 5), (5, 2), (1, 1), (0, 0), (4, 4), (2, 8), (3, 9)]
DECODE = [(1, 7), (1, 0), (1, 1), (1, 4), (1, 5), (1, 8)]


@dataclass
class Case:
    """Hold the structure of one batch: who owns which slot of the cache."""

    lengths: list[tuple[int, int]]
    page_size: int
    num_pages: int = 0
    kv_indptr: list[int] = field(default_factory=list)
    kv_indices: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        pages = [-(-kv_len // self.page_size) for _, kv_len in self.lengths]
        self.kv_indptr = [0, *accumulate(pages)]
        self.num_pages = sum(pages) + 3
        self.kv_indices = list(range(self.num_pages))
        random.Random(5).shuffle(self.kv_indices)
        del self.kv_indices[sum(pages) :]

    @property
    def qo_indptr(self) -> list[int]:
        return [0, *accumulate(q_len for q_len, _ in self.lengths)]

    def slots(self, b: int) -> list[tuple[int, int]]:
        """Return page and offset of each key of a sequence."""
        pages = self.kv_indices[self.kv_indptr[b] : self.kv_indptr[b + 1]]
        size = self.page_size
        return [(pages[i // size], i % size) for i in range(self.lengths[b][1])]

    def structural(self, *, prefill: bool) -> list[torch.Tensor]:
        """Return the structural inputs in the order of the interface."""
        last = [(kv_len - 1) % self.page_size + 1 for _, kv_len in self.lengths]
        # Of a sequence without pages the last length means nothing.
        last = [n if kv else 1 for n, (_, kv) in zip(last, self.lengths, strict=True)]
        vectors = [self.qo_indptr] if prefill else []
        vectors += [self.kv_indptr, self.kv_indices]
        vectors += [last] if self.page_size > 1 else []
        return [torch.tensor(values, dtype=torch.int32) for values in vectors]

    def cache(self, *shape: int, seed: int) -> torch.Tensor:
        """Return a cache with NaN in every slot that no sequence owns."""
        generator = torch.Generator().manual_seed(seed)
        owned = [slot for b in range(len(self.lengths)) for slot in self.slots(b)]
        cache = torch.full((self.num_pages, self.page_size, *shape), math.nan)
        for page, offset in owned:
            cache[page, offset] = torch.randn(*shape, generator=generator)
        return cache


def attend(
    query: list[float], keys: list[list[float]], values: list[list[float]]
) -> tuple[list[float], float]:
    """Return output and base-2 LSE of one query head."""
    if not keys:
        return [], -math.inf
    dots = [sum(a * b for a, b in zip(query, key, strict=True)) for key in keys]
    powers = [math.exp(SM_SCALE * dot) for dot in dots]
    total = sum(powers)
    columns = zip(*values, strict=True)
    output = [
        sum(p * v for p, v in zip(powers, column, strict=True)) / total
        for column in columns
    ]
    return output, math.log2(total)


def brute_force(case, q, k_cache, v_cache):
    """Attend with every query head on its own; caches have a head axis."""
    q64, k64, v64 = (tensor.double().tolist() for tensor in (q, k_cache, v_cache))
    ratio = q.shape[1] // k_cache.shape[2]
    output = torch.zeros(*q.shape[:2], v_cache.shape[-1], dtype=torch.float64)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float64)
    row = 0
    for b, (q_len, kv_len) in enumerate(case.lengths):
        for i in range(q_len):
            seen = max(0, kv_len - q_len + i + 1)
            slots = case.slots(b)[:seen]
            for head in range(q.shape[1]):
                keys = [k64[page][offset][head // ratio] for page, offset in slots]
                values = [v64[page][offset][head // ratio] for page, offset in slots]
                attended, lse[row, head] = attend(q64[row][head], keys, values)
                if attended:
                    output[row, head] = torch.tensor(attended, dtype=torch.float64)
            row += 1
    return output, lse


def gqa(case, ratio, *, prefill, dtype=torch.float32, num_kv_heads=2, head_dim=6):
    """Return run, its inputs and the expected outputs."""
    stage = "prefill" if prefill else "decode"
    end = "_ps1" if case.page_size == 1 else ""
    run = run_of(REFERENCES[f"gqa_paged_{stage}{end}"])
    generator = torch.Generator().manual_seed(8)
    q_shape = (case.qo_indptr[-1], ratio * num_kv_heads, head_dim)
    q = torch.randn(*q_shape, generator=generator).to(dtype)
    k = case.cache(num_kv_heads, head_dim, seed=1).to(dtype)
    v = case.cache(num_kv_heads, head_dim, seed=2).to(dtype)
    inputs = [q, k, v, *case.structural(prefill=prefill), SM_SCALE]
    return run, inputs, brute_force(case, q, k, v)


def mla(case, heads, *, prefill, dtype=torch.float32, ckv_dim=8, kpe_dim=3):
    """Return run, its inputs and the expected outputs."""
    stage = "prefill" if prefill else "decode"
    end = "_ps1" if case.page_size == 1 else ""
    run = run_of(REFERENCES[f"mla_paged_{stage}{end}"])
    generator = torch.Generator().manual_seed(9)
    shape = (case.qo_indptr[-1], heads)
    q_nope = torch.randn(*shape, ckv_dim, generator=generator).to(dtype)
    q_pe = torch.randn(*shape, kpe_dim, generator=generator).to(dtype)
    ckv = case.cache(ckv_dim, seed=3).to(dtype)
    kpe = case.cache(kpe_dim, seed=4).to(dtype)
    inputs = [q_nope, q_pe, ckv, kpe, *case.structural(prefill=prefill), SM_SCALE]
    # One KV head, whose key is both parts and whose value is the first.
    keys = torch.cat([ckv, kpe], dim=-1).unsqueeze(2)
    queries = torch.cat([q_nope, q_pe], dim=-1)
    return run, inputs, brute_force(case, queries, keys, ckv.unsqueeze(2))


def assert_agrees(run, inputs, expected, *, rtol=1e-5, atol=1e-5):
    output, lse = run(*inputs)
    assert output.dtype == inputs[0].dtype
    assert lse.dtype == torch.float32
    torch.testing.assert_close(output.double(), expected[0], rtol=rtol, atol=atol)
    torch.testing.assert_close(lse.double(), expected[1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("page_size", PAGE_SIZES)
@pytest.mark.parametrize("ratio", [1, 3, 5, 6, 8, 10])
def test_gqa_decode(ratio, page_size):
    assert_agrees(*gqa(Case(DECODE, page_size), ratio, prefill=False))


@pytest.mark.parametrize("page_size", PAGE_SIZES)
@pytest.mark.parametrize("ratio", [1, 3, 5, 6, 8, 10])
def test_gqa_prefill(ratio, page_size):
    assert_agrees(*gqa(Case(RAGGED, page_size), ratio, prefill=True))


@pytest.mark.parametrize("page_size", PAGE_SIZES)
@pytest.mark.parametrize("heads", [1, 8, 16])
def test_mla_decode(heads, page_size):
    assert_agrees(*mla(Case(DECODE, page_size), heads, prefill=False))


@pytest.mark.parametrize("page_size", PAGE_SIZES)
@pytest.mark.parametrize("heads", [1, 8, 16])
def test_mla_prefill(heads, page_size):
    assert_agrees(*mla(Case(RAGGED, page_size), heads, prefill=True))


@pytest.mark.parametrize("prefill", [False, True])
@pytest.mark.parametrize("page_size", PAGE_SIZES)
@pytest.mark.parametrize("family", [gqa, mla])
def test_bfloat16_in_bfloat16_out_and_inputs_left_alone(family, page_size, prefill):
    case = Case(RAGGED if prefill else DECODE, page_size)
    run, inputs, expected = family(case, 4, prefill=prefill, dtype=torch.bfloat16)
    before = [x.clone() for x in inputs[:-1]]
    assert_agrees(run, inputs, expected, rtol=1e-2, atol=1e-6)
    for tensor, kept in zip(inputs[:-1], before, strict=True):
        assert torch.equal(tensor.nan_to_num(7), kept.nan_to_num(7))


@pytest.mark.parametrize("page_size", PAGE_SIZES)
@pytest.mark.parametrize("family", [gqa, mla])
def test_float32_inputs_are_left_alone(family, page_size):
    # Where .float() hands back the input itself, an in-place step would show.
    run, inputs, _ = family(Case(RAGGED, page_size), 4, prefill=True)
    before = [x.clone() for x in inputs[:-1]]
    run(*inputs)
    for tensor, kept in zip(inputs[:-1], before, strict=True):
        assert torch.equal(tensor.nan_to_num(7), kept.nan_to_num(7))


@pytest.mark.parametrize("page_size", PAGE_SIZES)
@pytest.mark.parametrize("family", [gqa, mla])
def test_rows_without_a_key_are_zero_and_minus_infinity(family, page_size):
    run, inputs, _ = family(Case([(4, 1), (2, 0)], page_size), 2, prefill=True)
    output, lse = run(*inputs)
    unseen = torch.tensor([True, True, True, False, True, True])
    assert (output[unseen] == 0).all()
    assert (lse[unseen] == -math.inf).all()
    assert lse[3].isfinite().all()


@pytest.mark.parametrize("page_size", PAGE_SIZES)
@pytest.mark.parametrize("prefill", [False, True])
@pytest.mark.parametrize("family", [gqa, mla])
def test_a_batch_without_sequences_gives_no_rows(family, prefill, page_size):
    run, inputs, _ = family(Case([], page_size), 2, prefill=prefill)
    output, lse = run(*inputs)
    assert output.shape[0] == lse.shape[0] == 0


@pytest.mark.parametrize("family", [gqa, mla])
def test_lse_is_base_two(family):
    # With queries of zero all logits are 0: the LSE is the log of the count.
    run, inputs, _ = family(Case([(1, 8)], 4), 2, prefill=False)
    inputs[0].zero_()
    if family is mla:
        inputs[1].zero_()
    assert torch.allclose(run(*inputs)[1], torch.tensor(3.0))


@pytest.mark.parametrize("family", [gqa, mla])
def test_extreme_logits_stay_finite(family):
    run, inputs, _ = family(Case([(1, 8)], 4), 2, prefill=False)
    output, lse = run(*inputs[:-1], 1e5)
    assert output.isfinite().all()
    assert lse.isfinite().all()
