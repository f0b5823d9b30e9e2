"""What the attention ops share: cases, the float64 oracle, rows with a visible key."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch

from .definition import Backend, Case
from .paging import (
    SPARE_PAGES,
    input_table,
    kv_lengths,
    page_counts,
    query_starts,
    token_slots,
)
from .stream import Stream
from .tolerance import Override, Tolerance

WORKSPACE_BYTES = 256 * 2**20
# DeepSeek's and Kimi's heads have 128 dimensions before absorption into the latent
QK_NOPE_HEAD_DIM = 128
LSE_FROM_BF16_SUM = Override(
    "lse",
    Tolerance(rtol=0.0, atol=math.log2(1.0 + 2.0**-8), nmse=1e-6),
    "fa2 sums the probabilities after rounding them to bfloat16, whose unit roundoff "
    "is 2^-8: the base-2 logarithm of the sum is off by log2(1 + 2^-8) = 5.6e-3 at most",
    source="flashinfer/fa2",
)

# of FlashInfer's kernels for tensor cores; the default of bfloat16, which fits
FROM_BF16_WEIGHTS = tuple(
    Override(
        "output",
        Tolerance(rtol=1e-2, atol=8e-3, nmse=2e-5),
        "the kernel multiplies weights in bfloat16: but for a row's largest, which is 1, "
        "they are off by 2^-8/sqrt(3)/1.44 = 1.6e-3 of themselves, root mean square, and "
        "make up half of the row at most; with values of deviation 1 an output near 0 is "
        "off by 8e-4, of which atol is 10. Both sides round: rtol is above 2^-7",
        source=f"flashinfer/{backend}",
    )
    for backend in ("fa2", "fa3")
)


def lse_of_tensor_cores(products: int, total: int) -> Override:
    """Bound fa3's LSE of large logits, each the sum of so many products.

    `total` is the greatest sum of their sizes, Σ|q·k|·sm_scale·log2(e), which the logits
    cancel from.
    """
    return Override(
        "lse",
        Tolerance(rtol=1e-5, atol=round(total * 2.0**-22, 5), nmse=1e-7),
        f"the {products} products of a logit cancel from Σ|q·k|·sm_scale·log2(e) = "
        f"{total}, and tensor cores add them in float32 by truncation: by 2^-22 of that",
        source="flashinfer/fa3",
        case="extreme-logits",
    )


# A logit is the sum of n = 576 products at most, and its deviation is q_std: 2, or 40 in
# extreme-logits. An addition rounds a partial sum by 0.4·2^-24 of it, root mean square,
# and errors that differ in sign grow as a random walk (Higham and Mary, "A new approach
# to probabilistic rounding error analysis", SIAM J. Sci. Comput. 41, 2019): over all of
# them sqrt(n/2)·0.4·2^-24·q_std. Added up in parts, as a CPU does, it is less.
_LOGITS = (
    "the float32 sum of a logit's 576 products is off by sqrt(576/2)·0.4·2^-24 of their "
    "deviation of 2, 8.1e-7 root mean square and 4.9e-6 at most, which is 6 times that"
)
_EXTREME = "here logits are 20 times as large, and as far off"
# how a logit's error reaches weights and LSE: Blanchard, Higham and Higham, "Accurately
# computing the log-sum-exp and softmax functions", IMA J. Numer. Anal. 41, 2021
_OUTPUT = (
    "one rounding to bfloat16: half an ulp is 2^-8 at most, and its mean square 2^-14/12 "
    "of the output's at most, 5.1e-6, taken twice. Before it, a weight has its logit's "
    f"error, relative to it: {_LOGITS}; two equal weights make sqrt(2)/4·4.9 times that "
    "of values 4.9 apart, 8.4e-6. Weights in bfloat16 would be off by up to 2^-9"
)
_LSE = (
    f"{_LOGITS}, 7e-6 in base 2; the scale, the logarithm of the sum, the peak added to "
    "it and the change of base round by 2^-24 each. The NMSE is 1.6e-13 where one key's "
    "logit is all, and more where a few such happen to be small"
)
TO_ORACLE = (
    Override(
        "output",
        Tolerance(rtol=2.0**-8, atol=2e-4, nmse=1e-5),
        f"{_OUTPUT}; {_EXTREME}",
        source="oracle",
        case="extreme-logits",
    ),
    Override(
        "lse",
        Tolerance(rtol=2.0**-22, atol=2e-4, nmse=1e-11),
        f"{_LSE}; {_EXTREME}: 1.4e-4, however small the sum is that they cancel to",
        source="oracle",
        case="extreme-logits",
    ),
    Override(
        "output",
        Tolerance(rtol=2.0**-8, atol=1e-5, nmse=1e-5),
        _OUTPUT,
        source="oracle",
    ),
    Override(
        "lse", Tolerance(rtol=2.0**-22, atol=1e-5, nmse=1e-11), _LSE, source="oracle"
    ),
)
FA2, FA3 = Backend("fa2", min_sm=80), Backend("fa3", min_sm=90, max_sm=90)

# lengths around a page and around the 64-key block of the kernels
_BOUNDARIES = (1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129)
_RAGGED = tuple(Stream("ragged lengths").integers(1, 512, 16))
_LONG = tuple(Stream("long lengths").integers(1, 4096, 64))

_DECODE = {
    "single-token": ("small", (1,)),
    "boundaries": ("small", _BOUNDARIES),
    "empty-sequence": ("small", (17, 0, 5, 0)),
    "extreme-logits": ("small", (70, 3, 200)),
    "other-scale": ("small", (3, 33, 64)),
    "one-long": ("medium", (700, 1, 2, 3)),
    "ragged": ("medium", _RAGGED),
    "long": ("large", _LONG),
}
# pairs of query length and key length
_PREFILL = {
    "single-token": ("small", ((1, 1),)),
    "whole-prompt": ("small", tuple((n, n) for n in (1, 5, 31, 32, 33, 64, 65))),
    "chunked": ("small", ((16, 80), (1, 129), (33, 64), (64, 65))),
    "more-queries-than-keys": ("small", ((7, 3), (4, 0), (5, 5), (70, 1))),
    "empty-sequence": ("small", ((0, 0), (3, 17), (0, 9), (2, 2))),
    "extreme-logits": ("small", ((9, 70), (40, 40))),
    "other-scale": ("small", ((3, 33), (20, 20), (1, 64))),
    "one-long": ("medium", ((300, 300), (1, 1), (2, 3))),
    "ragged": ("medium", tuple((n % 97 + 1, n + 97) for n in _RAGGED[:8])),
    "long": ("large", tuple((n % 509 + 1, n + 509) for n in _LONG[:16])),
}


def decode_cases(page_size: int) -> list[Case]:
    """Return the cases of one query a sequence; params kv_lens and q_std."""
    return [
        paged_case(name, size, [1] * len(kv_lens), kv_lens, page_size)
        for name, (size, kv_lens) in _DECODE.items()
    ]


def prefill_cases(page_size: int) -> list[Case]:
    """Return the cases of several queries a sequence; params q_lens, kv_lens, q_std."""
    return [
        paged_case(
            name, size, [q for q, _ in pairs], [kv for _, kv in pairs], page_size
        )
        for name, (size, pairs) in _PREFILL.items()
    ]


def ragged_cases() -> list[Case]:
    """Return the prefill cases for keys without pages, one sequence after the other."""
    return [
        ragged_case(name, size, [q for q, _ in pairs], [kv for _, kv in pairs])
        for name, (size, pairs) in _PREFILL.items()
    ]


def ragged_case(
    name: str, size: str, q_lens: Sequence[int], kv_lens: Sequence[int]
) -> Case:
    """Return a case of sequences whose keys follow each other without pages."""
    axes = {
        "len_indptr": len(kv_lens) + 1,
        "total_q": sum(q_lens),
        "total_kv": sum(kv_lens),
    }
    return Case(name, size, axes, _params(name, q_lens, kv_lens))


def paged_case(
    name: str, size: str, q_lens: Sequence[int], kv_lens: Sequence[int], page_size: int
) -> Case:
    """Return a case of sequences whose keys lie in pages."""
    pages = sum(page_counts(kv_lens, page_size))
    axes = {
        "batch_size": len(kv_lens),
        "len_indptr": len(kv_lens) + 1,
        "total_q": sum(q_lens),
        "num_kv_indices": pages,
        "num_pages": pages + SPARE_PAGES,
    }
    return Case(name, size, axes, _params(name, q_lens, kv_lens))


def _params(name: str, q_lens: Sequence[int], kv_lens: Sequence[int]) -> dict[str, Any]:
    lengths = {"q_lens": tuple(q_lens), "kv_lens": tuple(kv_lens)}
    return {**lengths, **logit_params(name)}


def logit_params(name: str) -> dict[str, float]:
    """Return what makes the logits of a case: q_std, and a scale if it is about that."""
    # a deviation of 2 spreads the weights over few keys, so that each one matters
    params = {"q_std": 40.0 if name == "extreme-logits" else 2.0}
    if name == "other-scale":
        params["scale"] = 0.75
    return params


def scale_of(case: Case, dim: int) -> float:
    """Return 1 / sqrt(dim), or another scale where a case is about that.

    A reference that makes its own of the head's length shows there alone.
    """
    return float(case.params.get("scale", 1.0)) / math.sqrt(dim)


def oracle_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sm_scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return one sequence's causal attention and its base-2 LSE, all in float64.

    q [q_len, heads, d], k [kv_len, kv_heads, d], v [kv_len, kv_heads, d_v]; query i is
    at position kv_len - q_len + i and sees the keys up to its own position. A query
    that sees none gets 0 and -inf.
    """
    q_len, heads = q.shape[:2]
    kv_len, kv_heads = k.shape[:2]
    output = torch.zeros(q_len, heads, v.shape[2], dtype=torch.float64, device=q.device)
    lse = torch.full((q_len, heads), -math.inf, dtype=torch.float64, device=q.device)
    last_visible = torch.arange(q_len, device=q.device) + (kv_len - q_len)
    some = last_visible >= 0
    hidden = torch.arange(kv_len, device=q.device) > last_visible[some, None]
    ratio = heads // kv_heads
    for kv_head in range(kv_heads if kv_len else 0):
        # these query heads read this key head
        group = slice(kv_head * ratio, (kv_head + 1) * ratio)
        keys, values = k[:, kv_head].double(), v[:, kv_head].double()
        logits = q[some, group].double() @ keys.T
        bits = (logits * sm_scale / math.log(2.0)).masked_fill(
            hidden[:, None], -math.inf
        )
        peak = bits.amax(dim=2, keepdim=True)
        weights = torch.exp2(bits - peak)
        total = weights.sum(dim=2, keepdim=True)
        output[some, group] = weights @ values / total
        lse[some, group] = (torch.log2(total) + peak)[:, :, 0]
    return output, lse


def oracle_paged(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    inputs: Mapping[str, Any],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a batch's attention and LSE in float64, one sequence at a time.

    q [total_q, heads, d], k and v [num_pages, page_size, kv_heads, d]; the page table,
    the queries' starts and the scale are read from `inputs`.
    """
    slots = token_slots(input_table(inputs), k.shape[1])
    k, v = k.flatten(0, 1), v.flatten(0, 1)
    parts = [
        oracle_attention(rows, k[s], v[s], inputs["sm_scale"])
        for rows, s in zip(_sequences(q, query_starts(inputs)), slots, strict=True)
    ]
    return torch.cat([output for output, _ in parts]), torch.cat([e for _, e in parts])


def oracle_ragged(inputs: Mapping[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a batch's attention and LSE in float64, one sequence at a time.

    q [total_q, heads, d], k [total_kv, kv_heads, d], v [total_kv, kv_heads, d_v] and
    where their sequences begin are read from `inputs`.
    """
    starts = {"q": "qo_indptr", "k": "kv_indptr", "v": "kv_indptr"}
    qkv = [_sequences(inputs[name], inputs[start]) for name, start in starts.items()]
    parts = [
        oracle_attention(q, k, v, inputs["sm_scale"])
        for q, k, v in zip(*qkv, strict=True)
    ]
    return torch.cat([output for output, _ in parts]), torch.cat([e for _, e in parts])


def _sequences(tokens: torch.Tensor, starts: torch.Tensor) -> tuple[torch.Tensor, ...]:
    parts: tuple[torch.Tensor, ...] = torch.tensor_split(
        tokens, starts[1:-1].to("cpu", torch.int64)
    )
    return parts


def rows_with_a_key(inputs: Mapping[str, Any], page_size: int) -> torch.Tensor:
    """Return which of all queries see at least one key: bool [total_q].

    Production kernels write sentinels elsewhere (an LSE of -5e4 or so), so such rows
    are compared with the oracle alone.
    """
    q_lens = query_starts(inputs).diff().tolist()
    return _seeing(q_lens, kv_lengths(input_table(inputs), page_size))


def ragged_rows_with_a_key(inputs: Mapping[str, Any]) -> torch.Tensor:
    """Return the same for keys without pages: bool [total_q]."""
    q_lens = inputs["qo_indptr"].diff().tolist()
    return _seeing(q_lens, inputs["kv_indptr"].diff().tolist())


def _seeing(q_lens: Sequence[int], kv_lens: Sequence[int]) -> torch.Tensor:
    rows = [
        torch.arange(q_len) + (kv_len - q_len) >= 0
        for q_len, kv_len in zip(q_lens, kv_lens, strict=True)
    ]
    return torch.cat(rows)


@cache
def workspace(device: torch.device) -> torch.Tensor:
    """Return the scratch buffer of FlashInfer's wrappers, zeroed as they ask."""
    return torch.zeros(WORKSPACE_BYTES, dtype=torch.uint8, device=device)
