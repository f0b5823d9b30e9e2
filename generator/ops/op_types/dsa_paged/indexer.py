"""The indexer of sparse attention: cases, inputs, exact scores and their error bounds.

A page of the cache holds the fp8 keys of all its tokens, then their fp32 scales, as
bytes. A token's score is scale · Σ over heads of weight · relu(q · k); its id is
page · page_size + offset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from generator.ops.far_factors import far_apart, far_codes
from generator.ops.paging import (
    SPARE_PAGES,
    STALE,
    page_counts,
    page_table,
    token_slots,
)
from generator.ops.topk_policy import REFERENCE, Candidates
from kernel_judge.definition import LIMITS, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

FP8 = torch.float8_e4m3fn
_FP8_MAX = 448.0
_SCALE_BYTES = 4

_FP32 = 2.0**-24
_SUM_OF_128 = 128 * _FP32
# roundings after relu: weights, the sum over 64 heads, the scale
_ROUNDINGS = 68 * _FP32
# arithmetic → errors of a dot product relative to Σ|q·k| and to its value, and error of
# the score relative to its sum after relu
ERRORS = {
    # products of two fp8 numbers have 8 bits and are exact; only their sum rounds
    REFERENCE: (_SUM_OF_128, 0.0, _ROUNDINGS),
    "sglang/fp32": (_SUM_OF_128, 0.0, _ROUNDINGS),
    # the dot product is rounded to bfloat16
    "sglang/bf16": (_SUM_OF_128, 2.0**-9, _ROUNDINGS),
    # Hopper's fp8 tensor cores add 32 products and the partial sum, four times; they
    # truncate each below 2^-13 of the largest, which is at most Σ|q·k|
    "sglang/deep_gemm": (4 * 33 * 2.0**-13, 0.0, _ROUNDINGS),
    # float64 scores, rounded once
    "flashinfer/top-k": (0.0, 0.0, _FP32),
    "oracle": (0.0, 0.0, 0.0),
}


def indexer_cases(definition: Definition) -> list[Case]:
    """Return the cases: lengths around a page and around k, ties, an empty sequence."""
    k, page = definition.axes["topk"], definition.axes["page_size"]
    ragged = tuple(Stream("indexer lengths").integers(1, 4 * k, 6))
    long = tuple(Stream("indexer long lengths").integers(1, 8 * k, 24))
    sizes = {
        "one-token": ("small", (1,)),
        "around-a-page": ("small", (1, page - 1, page, page + 1, 2 * page + 1)),
        "empty-sequence": ("small", (17, 0, page + 6)),
        "around-topk": ("small", (k - 1, k, k + 1, k + page)),
        "ties": ("small", (k + k // 4, 2 * k - 1)),
        "ragged": ("medium", (3 * k + 7, *ragged)),
        "past-limits": (LIMITS, (520 * page, *[40] * 36)),
        "long": ("large", long),
    }
    cases = [_case(name, size, n, k, page) for name, (size, n) in sizes.items()]
    pages = {"num_pages": (1 << 13) + 500}
    # of no more tokens than are chosen all are chosen, whatever they weigh
    (some,) = (case for case in cases if case.name == "around-topk")
    far = far_apart(some, "weights", exponent=24.0)
    far += far_codes(some, q_index_fp8=1, weights=-1)
    return [
        replace(case, axes={**case.axes, **pages}) if case.size == LIMITS else case
        for case in cases
    ] + far


def _case(name: str, size: str, lens: Sequence[int], k: int, page_size: int) -> Case:
    counts = page_counts(lens, page_size)
    axes = {
        "batch_size": len(lens),
        # room for k tokens, and one column more than any sequence needs
        "max_num_pages": max(*counts, 0, -(-k // page_size)) + 1,
        "num_pages": sum(counts) + SPARE_PAGES,
    }
    return Case(name, size, axes, {"seq_lens": tuple(lens), "tied": name == "ties"})


def indexer_inputs(
    definition: Definition, case: Case, stream: Stream
) -> dict[str, Any]:
    """Return the indexer's inputs, with pages in random order and loud stale slots.

    q_index_fp8 float8_e4m3fn [batch_size, num_index_heads, index_head_dim];
    k_index_cache_fp8 int8 [num_pages, page_size, kv_cache_num_heads,
    head_dim_with_scale]; weights float32 [batch_size, num_index_heads]; seq_lens int32
    [batch_size]; block_table int32 [batch_size, max_num_pages]. Queries and keys point
    along or against one direction, so that relu clips about half of the dot products.
    """
    axes = {**definition.axes, **case.axes}
    lens, page_size = case.params["seq_lens"], axes["page_size"]
    table = page_table(lens, page_size, axes["num_pages"], stream)
    common = stream.child("direction").values((axes["index_head_dim"],))
    q, weights = _queries(axes, common, stream)
    return {
        "q_index_fp8": q,
        "k_index_cache_fp8": _cache(axes, case, table, common, stream),
        "weights": weights,
        "seq_lens": torch.tensor(lens, dtype=torch.int32),
        "block_table": _block_table(table, axes),
    }


def _queries(
    axes: Mapping[str, int], common: torch.Tensor, stream: Stream
) -> tuple[torch.Tensor, torch.Tensor]:
    shape = (axes["batch_size"], axes["num_index_heads"], axes["index_head_dim"])
    along = stream.child("q along").values(shape[:2])
    noise = stream.child("q").values(shape)
    q, scale = _quantised(along[..., None] * common + noise)
    # mostly positive, as a gate; includes the scale of q
    gate = 0.5 + stream.child("weights").values(shape[:2], 0.4)
    return q, gate * scale[..., 0]


def _cache(
    axes: Mapping[str, int],
    case: Case,
    table: Any,
    common: torch.Tensor,
    stream: Stream,
) -> torch.Tensor:
    tokens = axes["num_pages"] * axes["page_size"]
    stale = torch.ones(tokens, dtype=torch.bool)
    slots = token_slots(table, axes["page_size"])
    for some in slots:
        stale[some] = False
    along = stream.child("k along").values((tokens,))
    noise = stream.child("k").values((tokens, axes["index_head_dim"]))
    drawn = stream.child("loudness").integers(0, 3, tokens)
    loudness = torch.tensor([2.0**n for n in drawn])
    if case.params["tied"]:
        # seven distinct keys: many tokens share the k-th best score
        for some in slots:
            source = some[torch.arange(len(some)) % 7]
            along[some], noise[some] = along[source], noise[source]
            loudness[some] = loudness[source]
    loudness[stale] *= STALE
    keys, scales = _quantised((along[:, None] * common + noise) * loudness[:, None])
    pages = (axes["num_pages"], -1)
    parts = [keys.view(torch.int8), scales.view(torch.int8)]
    packed = torch.cat([part.reshape(pages) for part in parts], dim=1)
    return packed.view(
        axes["num_pages"],
        axes["page_size"],
        axes["kv_cache_num_heads"],
        axes["head_dim_with_scale"],
    )


def _quantised(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantise the last axis: float8_e4m3fn values, float32 scales [..., 1]."""
    scale = values.abs().amax(dim=-1, keepdim=True) / _FP8_MAX
    return (values / scale).clamp(-_FP8_MAX, _FP8_MAX).to(FP8), scale


def _block_table(table: Any, axes: Mapping[str, int]) -> torch.Tensor:
    rows, columns = axes["batch_size"], axes["max_num_pages"]
    # entries past a sequence's pages point to a page of no sequence
    used = set(table.indices.tolist())
    spare = next(page for page in range(axes["num_pages"]) if page not in used)
    filled = torch.full((rows, columns), spare, dtype=torch.int32)
    starts = table.indptr.tolist()
    for row in range(rows):
        pages = table.indices[starts[row] : starts[row + 1]]
        filled[row, : len(pages)] = pages
    return filled


def visible_ids(inputs: Mapping[str, Any], row: int) -> torch.Tensor:
    """Return the ids of a sequence's tokens in order: int64 [seq_len]."""
    page_size = inputs["k_index_cache_fp8"].shape[1]
    position = torch.arange(int(inputs["seq_lens"][row]))
    position = position.to(inputs["block_table"].device)
    page = inputs["block_table"][row].long()[position // page_size]
    ids: torch.Tensor = page * page_size + position % page_size
    return ids


def unpacked(
    inputs: Mapping[str, Any], ids: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Read keys and scales from the cache's bytes.

    ids int64 [n] → keys float64 [n, index_head_dim], scales float64 [n].
    """
    cache = inputs["k_index_cache_fp8"]
    page_size, size = cache.shape[1], cache.shape[3]
    dim = size - _SCALE_BYTES
    flat = cache.reshape(-1)
    page, offset = ids // page_size, ids % page_size
    start = page * page_size * size
    key_at = (start + offset * dim)[:, None] + torch.arange(dim, device=ids.device)
    scale_at = (start + page_size * dim + offset * _SCALE_BYTES)[:, None]
    scale_at = scale_at + torch.arange(_SCALE_BYTES, device=ids.device)
    keys = flat[key_at].view(FP8).double()
    return keys, flat[scale_at].view(torch.float32)[:, 0].double()


def exact_scores(inputs: Mapping[str, Any], row: int) -> torch.Tensor:
    """Return the scores of a sequence's tokens in order: float64 [seq_len]."""
    keys, scales = unpacked(inputs, visible_ids(inputs, row))
    dots = keys @ inputs["q_index_fp8"][row].double().T
    scores: torch.Tensor = dots.clamp_min(0.0) @ inputs["weights"][row].double()
    return scores * scales


def indexer_rows(
    definition: Definition, inputs: Mapping[str, Any], arithmetics: Sequence[str]
) -> list[Candidates]:
    """Return each sequence's ids, exact scores, and error bounds by arithmetic."""
    return [
        _candidates(inputs, row, arithmetics) for row in range(len(inputs["seq_lens"]))
    ]


def _candidates(
    inputs: Mapping[str, Any], row: int, arithmetics: Sequence[str]
) -> Candidates:
    ids = visible_ids(inputs, row)
    keys, scales = unpacked(inputs, ids)
    q = inputs["q_index_fp8"][row].double()
    dots, sums = keys @ q.T, keys.abs() @ q.abs().T
    weights = inputs["weights"][row].double().abs()
    errors = {}
    for name in arithmetics:
        of_sum, of_value, of_score = ERRORS[name]
        off = of_sum * sums + of_value * dots.abs()
        passed = (dots + off).clamp_min(0.0)
        # relu never enlarges an error; a surely negative value becomes an exact 0
        off = torch.minimum(off, passed)
        total = off @ weights + of_score * (passed @ weights)
        errors[name] = total * scales
    return Candidates(ids, exact_scores(inputs, row), errors)
