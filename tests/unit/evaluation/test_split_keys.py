"""A split of keys that the rest of the batch decides is seen by the condition `batch`."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from generator.evaluation.conditions.asking import Asking
from generator.evaluation.conditions.batch import batch
from generator.evaluation.conditions.condition import BROKEN, HOLDS
from generator.evaluation.rounds import rounds_of
from tests.builders import CPU, loaded
from tools.evaluate_mutants import InProcess

DECODE = "gqa_paged_decode_h5_kv1_d128_ps1"
PREFILL = "gqa_ragged_prefill_causal_h12_kv1_d128"
# blocks of FlashInfer's grid on an H100: two on each of 132 multiprocessors
GRID, CHUNK = 264, 128


def whole(lengths: list[int]) -> int:
    """Split nothing."""
    return max(lengths)


def fixed(lengths: list[int]) -> int:
    """Split by 128 keys, whatever the batch is."""
    return CHUNK


def planned(lengths: list[int]) -> int:
    """Return the shortest chunk of which the batch has no more than the grid's blocks."""
    low, high = CHUNK, max(CHUNK, *lengths)
    while low < high:
        middle = (low + high) // 2
        if sum(-(-max(n, 1) // middle) for n in lengths) > GRID:
            low = middle + 1
        else:
            high = middle
    return low


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, chunk: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output and base-2 LSE of queries [n, h, d] behind keys [m, 1, d], by chunks."""
    count, keys = len(q), len(k)
    places = torch.arange(keys - count, keys)[:, None]
    sums = torch.zeros(count, q.shape[1], v.shape[2])
    total = torch.full((count, q.shape[1]), -math.inf)
    for start in range(0, keys, chunk):
        some = slice(start, min(start + chunk, keys))
        logits = torch.einsum("nhd,md->nhm", q.float(), k[some, 0].float()) * scale
        seen = torch.arange(some.start, some.stop)[None] <= places
        logits = logits.masked_fill(~seen[:, None], -math.inf)
        lse = logits.logsumexp(-1)
        weights = (logits - lse[..., None]).exp().nan_to_num()
        part = torch.einsum("nhm,md->nhd", weights, v[some, 0].float())
        both = torch.logaddexp(total, lse)
        sums = (total - both).exp().nan_to_num()[..., None] * sums
        sums += (lse - both).exp().nan_to_num()[..., None] * part
        total = both
    return sums.to(q.dtype), total / math.log(2.0)


def decode(split: Callable[[list[int]], int]) -> Callable[..., Any]:
    def run(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale):
        ends = kv_indptr.tolist()
        chunk = split([b - a for a, b in pairwise(ends)])
        parts = []
        for n, (a, b) in enumerate(pairwise(ends)):
            pages = kv_indices[a:b].long()
            k, v = k_cache[pages, 0], v_cache[pages, 0]
            parts.append(attention(q[n : n + 1], k, v, float(sm_scale), chunk))
        return tuple(map(torch.cat, zip(*parts, strict=True)))

    return run


def prefill(split: Callable[[list[int]], int]) -> Callable[..., Any]:
    def run(q, k, v, qo_indptr, kv_indptr, sm_scale):
        rows, ends = qo_indptr.tolist(), kv_indptr.tolist()
        chunk = split([b - a for a, b in pairwise(ends)])
        parts = [
            attention(
                q[rows[n] : rows[n + 1]],
                k[ends[n] : ends[n + 1]],
                v[ends[n] : ends[n + 1]],
                float(sm_scale),
                chunk,
            )
            for n in range(len(ends) - 1)
        ]
        return tuple(map(torch.cat, zip(*parts, strict=True)))

    return run


@pytest.mark.parametrize(
    ("split", "verdict"), [(whole, HOLDS), (fixed, HOLDS), (planned, BROKEN)]
)
@pytest.mark.parametrize(("name", "made"), [(DECODE, decode), (PREFILL, prefill)])
def test_split_by_what_else_is_in_the_batch_is_broken(name, made, split, verdict):
    asked = rounds_of(loaded(name), [], Path(), CPU, 5)
    session = InProcess(made(split))
    found = batch(Asking(session, asked, CPU, False, 7, lambda: session, 1.0))
    assert (found.verdict, found.details["alone"]) == (
        verdict,
        "yes" if verdict == HOLDS else "no",
    )
    if verdict == BROKEN:
        assert "alone: long-alone: " in found.reason
