"""Causal latent attention before compression: values are shorter than keys."""

import math

import torch


@torch.no_grad()
def run(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    qo_indptr: torch.Tensor,
    kv_indptr: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    total_q, num_qo_heads, _ = q.shape
    vo_dim = v.shape[2]

    # What a query that sees no key returns.
    output = q.new_zeros(total_q, num_qo_heads, vo_dim)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

    qo_bounds = qo_indptr.tolist()
    kv_bounds = kv_indptr.tolist()
    for b in range(len(kv_bounds) - 1):
        qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
        kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
        if qo_start == qo_end or kv_start == kv_end:
            continue
        kv_len = kv_end - kv_start

        # The last query stands at the last key. Queries that stand before the first
        # key see none: only the last kv_len queries take part.
        qo_start = max(qo_start, qo_end - kv_len)
        q_len = qo_end - qo_start
        query_positions = torch.arange(kv_len - q_len, kv_len, device=q.device)
        key_positions = torch.arange(kv_len, device=q.device)
        future = key_positions[None, :] > query_positions[:, None]  # [q_len, kv_len]

        # Every query head has a key and value head of its own: heads lead in all three.
        queries = q[qo_start:qo_end].float().transpose(0, 1)
        keys = k[kv_start:kv_end].float().transpose(0, 1)  # [heads, kv_len, qk_dim]
        values = v[kv_start:kv_end].float().transpose(0, 1)  # [heads, kv_len, vo_dim]
        logits = queries @ keys.transpose(1, 2) * sm_scale
        logits.masked_fill_(future, -math.inf)  # [heads, q_len, kv_len]
        attended = logits.softmax(dim=-1) @ values
        output[qo_start:qo_end] = attended.transpose(0, 1).to(q.dtype)
        # Base 2: log2 of the sum of exponentials.
        lse[qo_start:qo_end] = logits.logsumexp(dim=-1).T / math.log(2)
    return output, lse
