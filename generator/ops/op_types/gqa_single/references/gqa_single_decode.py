"""Grouped-query attention of one query over the keys of its sequence."""

import math

import torch


@torch.no_grad()
def run(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sm_scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    num_qo_heads, head_dim = q.shape
    num_kv_heads = k.shape[1]
    group_size = num_qo_heads // num_kv_heads

    # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
    queries = q.float().reshape(num_kv_heads, group_size, head_dim)
    logits = torch.einsum("hgd,khd->hgk", queries, k.float()) * sm_scale
    attended = torch.einsum("hgk,khd->hgd", logits.softmax(dim=-1), v.float())
    # Base 2: log2 of the sum of exponentials.
    lse = logits.logsumexp(dim=-1).flatten() / math.log(2)
    return attended.flatten(0, 1).to(q.dtype), lse
