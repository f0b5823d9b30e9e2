"""Grouped-query attention, one query a sequence, pages of one token."""

import math

import torch


@torch.no_grad()
def run(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    batch_size, num_qo_heads, head_dim = q.shape
    num_kv_heads = k_cache.shape[2]
    group_size = num_qo_heads // num_kv_heads

    # What a sequence without keys returns.
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

    kv_bounds = kv_indptr.tolist()
    for b in range(batch_size):
        kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
        if kv_start == kv_end:
            continue
        pages = kv_indices[kv_start:kv_end]
        keys = k_cache[pages, 0].float()  # [kv_len, num_kv_heads, head_dim]
        values = v_cache[pages, 0].float()

        # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
        queries = q[b].float().reshape(num_kv_heads, group_size, head_dim)
        logits = torch.einsum("hgd,khd->hgk", queries, keys) * sm_scale
        attended = torch.einsum("hgk,khd->hgd", logits.softmax(dim=-1), values)
        output[b] = attended.flatten(0, 1).to(q.dtype)
        # Base 2: log2 of the sum of exponentials.
        lse[b] = logits.logsumexp(dim=-1).flatten() / math.log(2)
    return output, lse
