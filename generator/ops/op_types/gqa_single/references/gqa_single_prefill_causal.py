"""Causal grouped-query attention of one sequence."""

import math

import torch


@torch.no_grad()
def run(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sm_scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    q_len, num_qo_heads, head_dim = q.shape
    kv_len, num_kv_heads, _ = k.shape
    group_size = num_qo_heads // num_kv_heads

    # What a query that sees no key returns.
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

    # The last query stands at the last key; queries before the first key see none.
    first = max(q_len - kv_len, 0)
    query_positions = torch.arange(first, q_len, device=q.device) + (kv_len - q_len)
    key_positions = torch.arange(kv_len, device=q.device)
    future = key_positions[None, :] > query_positions[:, None]  # [queries, kv_len]

    # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
    queries = q[first:].float()
    queries = queries.reshape(-1, num_kv_heads, group_size, head_dim)
    logits = torch.einsum("qhgd,khd->hgqk", queries, k.float()) * sm_scale
    logits.masked_fill_(future, -math.inf)
    attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), v.float())
    output[first:] = attended.flatten(1, 2).to(q.dtype)
    # Base 2: log2 of the sum of exponentials.
    lse[first:] = logits.logsumexp(dim=-1).flatten(0, 1).T / math.log(2)
    return output, lse
