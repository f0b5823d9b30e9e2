"""Paged prefill, grouped queries, with a sink logit a head."""

import math

import torch


@torch.no_grad()
def run(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    sinks: torch.Tensor,
    qo_indptr: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    kv_last_page_len: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    _, num_qo_heads, head_dim = q.shape
    _, page_size, num_kv_heads, _ = k_cache.shape
    group_size = num_qo_heads // num_kv_heads

    # What a query that sees no key returns: of its sink alone.
    output = torch.zeros_like(q)
    lse = (sinks.float() / math.log(2)).repeat(len(q), 1)

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
        # [q_len, kv_len]
        hidden = key_positions[None, :] > query_positions[:, None]

        # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
        queries = q[qo_start:qo_end].float()
        queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
        logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
        logits.masked_fill_(hidden, -math.inf)
        # A sink is one more logit, unscaled, whose value is zero.
        sink = sinks.float().reshape(num_kv_heads, group_size, 1, 1)
        logits = torch.cat([logits, sink.expand(*logits.shape[:-1], 1)], dim=-1)
        weights = logits.softmax(dim=-1)[..., :-1]
        attended = torch.einsum("hgqk,khd->qhgd", weights, values)
        output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
        # Base 2: log2 of the sum of exponentials.
        lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
        lse[qo_start:qo_end] = lse_nat.T / math.log(2)
    return output, lse
