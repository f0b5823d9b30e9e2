"""Paged decode, grouped queries, queries and cache in 8 bits."""

import math

import torch


@torch.no_grad()
def run(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    q_scale: torch.Tensor,
    k_scale: torch.Tensor,
    v_scale: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    kv_last_page_len: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    batch_size, num_qo_heads, head_dim = q.shape
    _, page_size, num_kv_heads, _ = k_cache.shape
    group_size = num_qo_heads // num_kv_heads

    # What a sequence without keys returns.
    output = torch.zeros(q.shape, dtype=torch.bfloat16, device=q.device)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

    kv_bounds = kv_indptr.tolist()
    last_page_lens = kv_last_page_len.tolist()
    for b in range(batch_size):
        kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
        if kv_start == kv_end:
            continue
        pages = kv_indices[kv_start:kv_end]
        # Only the first last_page_lens[b] slots of the last page are filled.
        kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
        # [kv_len, num_kv_heads, head_dim]
        keys = k_cache[pages].flatten(0, 1)[:kv_len].float() * k_scale[:, None]
        values = v_cache[pages].flatten(0, 1)[:kv_len].float() * v_scale[:, None]

        # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
        queries = (q[b].float() * q_scale[:, None]).reshape(
            num_kv_heads, group_size, head_dim
        )
        logits = torch.einsum("hgd,khd->hgk", queries, keys) * sm_scale
        attended = torch.einsum("hgk,khd->hgd", logits.softmax(dim=-1), values)
        output[b] = attended.flatten(0, 1).to(torch.bfloat16)
        # Base 2: log2 of the sum of exponentials.
        lse[b] = logits.logsumexp(dim=-1).flatten() / math.log(2)
    return output, lse
