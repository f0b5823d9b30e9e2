"""Solutions that no host waits for, of definitions whose references do.

A reference may ask the GPU for a number in the middle (`int(k.max())`), which can't be
captured into a CUDA graph. What an engine captures must not: these compute the same by
tensors alone. `solution_of` finds one by the definition's name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Answer = Tensor | tuple[Tensor, Tensor]


def solution_of(name: str) -> Callable[..., Any] | None:
    """Return the solution of a definition, None if its reference is one."""
    for beginning, solution in _SOLUTIONS.items():
        if name.startswith(beginning):
            return solution
    return None


def _min_p(probs: Tensor, min_p: Tensor) -> Tensor:
    least = (min_p * probs.amax(dim=1)).unsqueeze(1)
    return _drawn(probs.masked_fill(probs < least, 0.0))


def _top_k_top_p(logits: Tensor, top_k: Tensor, top_p: Tensor) -> Tensor:
    ordered, tokens = logits.sort(dim=1, descending=True)
    k = torch.where(top_k > 0, top_k, logits.shape[1]).unsqueeze(1)
    rank = torch.arange(logits.shape[1], device=logits.device)
    weights = ordered.masked_fill(rank >= k, -math.inf).softmax(dim=1)
    before = weights.cumsum(dim=1) - weights
    kept = (before < top_p.unsqueeze(1)) | (rank == 0)
    place = _drawn(weights.masked_fill(~kept, 0.0)).unsqueeze(1)
    return tokens.gather(1, place).squeeze(1)


def _drawn(weights: Tensor) -> Tensor:
    """Return a token of each row, as often as its weight says."""
    return (weights / torch.empty_like(weights).exponential_()).argmax(dim=1)


def _top_k_renorm(probs: Tensor, top_k: Tensor) -> Tensor:
    kept = probs.masked_fill(probs < _kth(probs, top_k), 0.0)
    return kept / kept.sum(dim=1, keepdim=True)


def _top_k_mask(logits: Tensor, top_k: Tensor) -> Tensor:
    return logits.masked_fill(logits < _kth(logits, top_k), -math.inf)


def _kth(rows: Tensor, top_k: Tensor) -> Tensor:
    """Return the k-th largest value of each row, of all k <= 2^31: [rows, 1]."""
    place = top_k.long().clamp(max=rows.shape[1]).unsqueeze(1) - 1
    return rows.sort(dim=1, descending=True).values.gather(1, place)


def _gqa_decode(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    kv_indptr: Tensor,
    kv_indices: Tensor,
    sm_scale: float,
    return_lse: bool = False,
) -> Answer:
    group = q.shape[1] // k_cache.shape[2]
    owner = _owners(kv_indptr, kv_indices)
    # a page is one token, as the names of all such definitions say (ps1)
    keys = k_cache[kv_indices, 0].float().repeat_interleave(group, dim=1)
    values = v_cache[kv_indices, 0].float().repeat_interleave(group, dim=1)
    logits = (_padded(q)[owner].float() * keys).sum(dim=-1) * sm_scale
    return _attended(q, owner, logits, values, return_lse)


def _mla_decode(
    q_nope: Tensor,
    q_pe: Tensor,
    ckv_cache: Tensor,
    kpe_cache: Tensor,
    kv_indptr: Tensor,
    kv_indices: Tensor,
    sm_scale: float,
    return_lse: bool = False,
) -> Answer:
    owner = _owners(kv_indptr, kv_indices)
    ckv, kpe = (cache[kv_indices].float() for cache in (ckv_cache, kpe_cache))
    logits = (_padded(q_nope)[owner].float() * ckv).sum(dim=-1)
    logits += (_padded(q_pe)[owner].float() * kpe).sum(dim=-1)
    return _attended(q_nope, owner, logits * sm_scale, ckv, return_lse)


def _owners(starts: Tensor, pages: Tensor) -> Tensor:
    """Return the sequence of each page, one too many for pages of none: int64."""
    place = torch.arange(len(pages), device=pages.device, dtype=starts.dtype)
    return torch.searchsorted(starts, place, right=True) - 1


def _padded(rows: Tensor) -> Tensor:
    """Return rows with one more, for pages of no sequence."""
    return torch.cat([rows, torch.zeros_like(rows[:1])])


def _attended(
    q: Tensor, owner: Tensor, logits: Tensor, values: Tensor, return_lse: bool
) -> Answer:
    """Return the mean of each sequence's values, and the LSE to the base 2.

    `logits` are float32 [pages, heads], `values` [pages, heads or 1, dim].
    """
    batch, heads = q.shape[:2]
    rows = owner.unsqueeze(1).expand(-1, heads)
    largest = q.new_full((batch + 1, heads), -math.inf, dtype=torch.float32)
    largest = largest.scatter_reduce(0, rows, logits, "amax")
    weights = (logits - largest[owner]).exp()
    total = torch.zeros_like(largest).index_add(0, owner, weights)
    weighed = weights.unsqueeze(2) * values
    summed = weighed.new_zeros(batch + 1, heads, weighed.shape[2])
    summed = summed.index_add(0, owner, weighed)
    # of a sequence without a page 0 / 0, which is to be 0
    output = summed / total.clamp(min=1e-30).unsqueeze(2)
    output = output[:batch].to(q.dtype)
    lse = (largest + total.log())[:batch] / math.log(2)
    return (output, lse) if return_lse else output


_SOLUTIONS: dict[str, Callable[..., Any]] = {
    "min_p_sampling_v": _min_p,
    "top_k_top_p_sampling_from_logits_v": _top_k_top_p,
    "top_k_renorm_probs_v": _top_k_renorm,
    "top_k_mask_logits_v": _top_k_mask,
    "gqa_paged_decode_return_lse_": _gqa_decode,
    "mla_paged_decode_return_lse_": _mla_decode,
}
