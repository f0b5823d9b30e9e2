"""Ragged prefill, grouped queries, with a soft cap on the logits."""

import math

import torch

# Bound of the scaled logits.
LOGITS_SOFT_CAP = 50.0


@torch.no_grad()
def run(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    qo_indptr: torch.Tensor,
    kv_indptr: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    _, num_qo_heads, head_dim = q.shape
    num_kv_heads = k.shape[1]
    group_size = num_qo_heads // num_kv_heads

    # What a query that sees no key returns.
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

    qo_bounds = qo_indptr.tolist()
    kv_bounds = kv_indptr.tolist()
    for b in range(len(kv_bounds) - 1):
        qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
        kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
        if qo_start == qo_end or kv_start == kv_end:
            continue
        kv_len = kv_end - kv_start
        keys = k[kv_start:kv_end].float()  # [kv_len, num_kv_heads, head_dim]
        values = v[kv_start:kv_end].float()

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
        logits = LOGITS_SOFT_CAP * torch.tanh(logits / LOGITS_SOFT_CAP)
        logits.masked_fill_(hidden, -math.inf)
        attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
        output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
        # Base 2: log2 of the sum of exponentials.
        lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
        lse[qo_start:qo_end] = lse_nat.T / math.log(2)
    return output, lse
