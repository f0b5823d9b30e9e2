"""Causal paged prefill, grouped queries, with ALiBi."""

import math

import torch


def alibi_slopes(num_qo_heads: int) -> list[float]:
    # The largest power of 2 up to the number of heads; the others come between.
    whole = 1 << (num_qo_heads.bit_length() - 1)
    return [
        2 ** (-8 * (h + 1) / whole)
        if h < whole
        else 2 ** (-4 * (2 * (h - whole) + 1) / whole)
        for h in range(num_qo_heads)
    ]


@torch.no_grad()
def run(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    qo_indptr: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    kv_last_page_len: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    _, num_qo_heads, head_dim = q.shape
    _, page_size, num_kv_heads, _ = k_cache.shape
    group_size = num_qo_heads // num_kv_heads
    slopes = torch.tensor(alibi_slopes(num_qo_heads), device=q.device)
    slopes = slopes.reshape(num_kv_heads, group_size, 1)

    # What a query that sees no key returns.
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

    qo_bounds = qo_indptr.tolist()
    kv_bounds = kv_indptr.tolist()
    last_page_lens = kv_last_page_len.tolist()
    for b in range(len(kv_bounds) - 1):
        qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
        kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
        if qo_start == qo_end or kv_start == kv_end:
            continue
        pages = kv_indices[kv_start:kv_end]
        # Only the first last_page_lens[b] slots of the last page are filled.
        kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
        # [kv_len, num_kv_heads, head_dim]
        keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
        values = v_cache[pages].flatten(0, 1)[:kv_len].float()

        # The last query stands at the last key. Queries that stand before the first
        # key see none: only the last kv_len queries take part.
        qo_start = max(qo_start, qo_end - kv_len)
        q_len = qo_end - qo_start
        query_positions = torch.arange(kv_len - q_len, kv_len, device=q.device)
        key_positions = torch.arange(kv_len, device=q.device)
        future = key_positions[None, :] > query_positions[:, None]  # [q_len, kv_len]

        # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
        queries = q[qo_start:qo_end].float()
        queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
        logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
        logits += slopes[..., None] * (key_positions - query_positions[:, None])
        logits.masked_fill_(future, -math.inf)
        attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
        output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
        # Base 2: log2 of the sum of exponentials.
        lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
        lse[qo_start:qo_end] = lse_nat.T / math.log(2)
    return output, lse
