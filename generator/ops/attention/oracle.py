"""Attention in float64, one sequence at a time, with all that variants add."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from generator.ops.attention.masks import mask_rows
from generator.ops.attention.variant import Variant
from generator.ops.paging import input_table, key_lengths, query_starts, token_slots

_PLAIN = Variant()
# of a step's keys, values and logits, about: a core's cache holds so much; a GPU's calls
# take as long
_CPU_BYTES, _GPU_BYTES = 4 << 20, 256 << 20
# queries of a step at least
_QUERIES = 64
# queries times keys of a sequence that a CPU asks for without waiting for the GPU
_SHORT = 1 << 20


def oracle_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    sm_scale: float,
    variant: Variant = _PLAIN,
    sinks: torch.Tensor | None = None,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return attention of one sequence and its base-2 LSE, in float64.

    q [q_len, heads, d], k [kv_len, kv_heads, d], v [kv_len, kv_heads, d_v], of any
    float dtype, sinks [heads], mask bool [q_len, kv_len] → output [q_len, heads, d_v], LSE [q_len, heads]. Query i
    is at position kv_len - q_len + i. A sink is a natural logit without a value: it
    adds to the sum of exponentials alone. A mask of floats is added to the logits. A
    query that sees no key gets 0, and the LSE of its sink, -inf without one.
    """
    q_len, heads = q.shape[:2]
    kv_len, kv_heads = k.shape[:2]
    ratio = heads // kv_heads
    most = _GPU_BYTES if q.is_cuda else _CPU_BYTES
    few = max(_QUERIES, most // max(8 * kv_len * ratio, 1))
    if variant.causal and q_len > few:
        # of half of the keys at least, most queries see none
        parts = [
            oracle_attention(
                *(q[some], k[keys], v[keys], sm_scale, variant, sinks),
                mask if mask is None else mask[some, keys],
            )
            for some, keys in _steps(q_len, kv_len, few, variant)
        ]
        outputs, sums = zip(*parts, strict=True)
        return torch.cat(outputs), torch.cat(sums)
    output = torch.zeros(q_len, heads, v.shape[2], dtype=torch.float64, device=q.device)
    lse = torch.full((q_len, heads), -math.inf, dtype=torch.float64, device=q.device)
    if sinks is not None:
        lse[:] = sinks.double() / math.log(2.0)
    place = q.device if q_len * kv_len > _SHORT else torch.device("cpu")
    visible = visible_keys(q_len, kv_len, variant, place)
    if mask is not None and mask.dtype == torch.bool:
        visible = visible.to(q.device) & mask
        mask = None
    seeing = visible.any(dim=1)
    # all rows where no query is without a key: choosing rows waits for a GPU
    some = slice(None) if seeing.all() else seeing.to(q.device)
    hidden = (~visible[seeing]).to(q.device)[:, None] if not visible.all() else None
    rows = int(seeing.sum())
    if variant.slopes:
        # of each key from each query, negative where it stands before
        distance = torch.arange(kv_len) - torch.arange(kv_len - q_len, kv_len)[:, None]
        distance = distance[seeing.cpu(), None].double().to(q.device)
    # key heads at a time: of short sequences one at a time would be calls alone
    each = 8 * kv_len * (rows * ratio + k.shape[2] + v.shape[2])
    step = max(1, most // max(each, 1))
    for first in range(0, kv_heads if kv_len else 0, step):
        own = slice(first, first + step)
        # these query heads read these key heads
        group = slice(first * ratio, (first + step) * ratio)
        # [key heads, keys, d], and the queries of each: [key heads, rows · ratio, d]
        keys, values = (x[:, own].double().transpose(0, 1) for x in (k, v))
        asking = _by_key_head(q[some, group].double(), ratio).flatten(1, 2)
        # in place: fresh memory for each step takes longer than the arithmetic
        logits = (asking @ keys.mT).view(len(keys), rows, ratio, kv_len).mul_(sm_scale)
        if variant.soft_cap > 0:
            logits.div_(variant.soft_cap).tanh_().mul_(variant.soft_cap)
        if mask is not None:
            logits += mask[some, None]
        if variant.slopes:
            slopes = torch.tensor(variant.slopes[group], dtype=torch.float64)
            logits += slopes.to(q.device).view(-1, 1, ratio, 1) * distance
        bits = logits.div_(math.log(2.0))
        if hidden is not None:
            bits.masked_fill_(hidden, -math.inf)
        # of the sinks alone so far
        sink = _by_key_head(lse[some, group], ratio)[..., None]
        peak = torch.maximum(bits.amax(dim=3, keepdim=True), sink)
        weights = bits.sub_(peak).exp2_()
        total = weights.sum(dim=3, keepdim=True) + torch.exp2(sink - peak)
        mean = (weights.flatten(1, 2) @ values).view(
            *total.shape[:3], v.shape[2]
        ) / total
        output[some, group] = mean.transpose(0, 1).flatten(1, 2)
        lse[some, group] = (torch.log2(total) + peak)[..., 0].transpose(0, 1).flatten(1)
    return output, lse


def _steps(
    q_len: int, kv_len: int, few: int, variant: Variant
) -> Iterator[tuple[slice, slice]]:
    """Yield a few queries each time, and the keys up to the last one's.

    Keys before the first one's window are left out too. Both ends stand to each other as
    those of the sequence do.
    """
    for first in range(0, q_len, few):
        last = min(first + few, q_len)
        end = max(kv_len - q_len + last, 0)
        start = kv_len - q_len + first - variant.window_left
        low = max(start, 0) if variant.window_left >= 0 else 0
        yield slice(first, last), slice(min(low, end), end)


def _by_key_head(of_queries: torch.Tensor, ratio: int) -> torch.Tensor:
    """Return [rows, heads, …] as [key heads, rows, ratio, …]."""
    rows, heads, *rest = of_queries.shape
    return of_queries.reshape(rows, heads // ratio, ratio, *rest).transpose(0, 1)


def visible_keys(
    q_len: int,
    kv_len: int,
    variant: Variant = _PLAIN,
    device: torch.device | None = None,
) -> torch.Tensor:
    """Return which keys each query of a sequence sees: bool [q_len, kv_len]."""
    own = torch.arange(q_len, device=device)[:, None] + (kv_len - q_len)
    keys = torch.arange(kv_len, device=device)
    visible = torch.ones(q_len, kv_len, dtype=torch.bool, device=device)
    if variant.causal:
        visible &= keys <= own
    if variant.window_left >= 0:
        visible &= keys >= own - variant.window_left
    return visible


def sees_a_key(q_len: int, kv_len: int, variant: Variant = _PLAIN) -> torch.Tensor:
    """Return which queries of a sequence see any key: bool [q_len].

    The newest key that a query may see is its own, or the last one; windows hold that.
    """
    if not variant.causal:
        return torch.full((q_len,), kv_len > 0)
    return torch.arange(q_len) + (kv_len - q_len) >= 0


def oracle_paged(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    inputs: Mapping[str, Any],
    variant: Variant = _PLAIN,
    scales: tuple[Any, Any] = (1.0, 1.0),
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return attention and LSE of a batch over pages, in float64.

    q [total_q, heads, d], k [num_pages, page_size, kv_heads, d], v [num_pages,
    page_size, kv_heads, d_v], of any float dtype → output [total_q, heads, d_v], LSE
    [total_q, heads]. `inputs` holds the page table, qo_indptr of prefill, sm_scale, and
    sinks and custom_mask where the definition has them. Stored keys and values are
    multiplied by `scales`.
    """
    slots = token_slots(input_table(inputs).on_cpu(), k.shape[1])
    k, v = k.flatten(0, 1), v.flatten(0, 1)
    if k.is_cuda and slots:
        # one copy for all sequences
        lengths = [len(own) for own in slots]
        slots = [*torch.split(torch.cat(slots).to(k.device), lengths)]
    # numbers, or tensors that spread over [keys, kv_heads, d]
    of_k, of_v = scales
    kv = ((_scaled(k[own], of_k), _scaled(v[own], of_v)) for own in slots)
    return _batch(_sequences(q, query_starts(inputs)), kv, inputs, variant)


def _scaled(stored: torch.Tensor, scale: Any) -> torch.Tensor:
    """Return stored keys or values times their scale, in float64 where it has any."""
    is_one = not isinstance(scale, torch.Tensor) and scale == 1.0
    return stored if is_one else stored.double() * scale


def oracle_ragged(
    inputs: Mapping[str, Any], variant: Variant = _PLAIN
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return attention and LSE of a batch over contiguous keys, in float64.

    `inputs` holds q [total_q, heads, d], k [total_kv, kv_heads, d], v [total_kv,
    kv_heads, d_v], qo_indptr, kv_indptr, sm_scale, and sinks where the definition has
    them → output [total_q, heads, d_v], LSE [total_q, heads].
    """
    k, v = (_sequences(inputs[name], inputs["kv_indptr"]) for name in ("k", "v"))
    q = _sequences(inputs["q"], inputs["qo_indptr"])
    return _batch(q, zip(k, v, strict=True), inputs, variant)


def _batch(
    queries: Sequence[torch.Tensor],
    kv: Iterable[tuple[torch.Tensor, torch.Tensor]],
    inputs: Mapping[str, Any],
    variant: Variant,
) -> tuple[torch.Tensor, torch.Tensor]:
    scale, sinks = inputs["sm_scale"], inputs.get("sinks")
    parts, masked = [], 0
    for q, (k, v) in zip(queries, kv, strict=True):
        mask = inputs.get("custom_mask")
        if mask is not None:
            mask = mask[masked : masked + len(q) * len(k)].view(len(q), len(k))
            masked += mask.numel()
        parts.append(oracle_attention(q, k, v, scale, variant, sinks, mask))
    return torch.cat([output for output, _ in parts]), torch.cat([e for _, e in parts])


def _sequences(tokens: torch.Tensor, starts: torch.Tensor) -> tuple[torch.Tensor, ...]:
    parts: tuple[torch.Tensor, ...] = torch.tensor_split(
        tokens, starts[1:-1].to("cpu", torch.int64)
    )
    return parts


def rows_with_a_key(
    inputs: Mapping[str, Any], page_size: int | None = None, variant: Variant = _PLAIN
) -> torch.Tensor:
    """Return the queries that see at least one key: bool [total_q].

    `page_size` None means contiguous keys. Production kernels write sentinels into the
    other rows (an LSE of about -5e4), so only the oracle judges those.
    """
    q_lens = query_starts(inputs).diff().tolist()
    lengths = list(zip(q_lens, key_lengths(inputs, page_size), strict=True))
    if "custom_mask" in inputs:
        masks = mask_rows(inputs["custom_mask"].cpu(), lengths)
        return torch.cat([mask.any(dim=1) for mask in masks])
    return torch.cat([sees_a_key(*one, variant) for one in lengths])
