"""Grouped-query attention of one sequence, every query over all keys."""

import math

import torch


@torch.no_grad()
def run(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sm_scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    q_len, num_qo_heads, head_dim = q.shape
    num_kv_heads = k.shape[1]

    # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
    group_size = num_qo_heads // num_kv_heads
    queries = q.float().reshape(q_len, num_kv_heads, group_size, head_dim)
    logits = torch.einsum("qhgd,khd->hgqk", queries, k.float()) * sm_scale
    attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), v.float())
    # Base 2: log2 of the sum of exponentials.
    lse = logits.logsumexp(dim=-1).flatten(0, 1).T / math.log(2)
    return attended.flatten(1, 2).to(q.dtype), lse.contiguous()
