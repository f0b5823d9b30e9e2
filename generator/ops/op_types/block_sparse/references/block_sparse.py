"""Grouped-query attention of blocks of queries over chosen blocks of keys."""

import math

import torch


@torch.no_grad()
def run(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    indptr: torch.Tensor,
    indices: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    num_block_rows, block_rows, num_qo_heads, head_dim = q.shape
    num_kv_heads = k.shape[2]
    group_size = num_qo_heads // num_kv_heads

    # What the queries of a row without a block return.
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:3], -math.inf, dtype=torch.float32, device=q.device)

    bounds = indptr.tolist()
    for row in range(num_block_rows):
        if bounds[row] == bounds[row + 1]:
            continue
        columns = indices[bounds[row] : bounds[row + 1]]
        keys = k[columns].flatten(0, 1).float()  # [keys, num_kv_heads, head_dim]
        values = v[columns].flatten(0, 1).float()

        # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
        queries = q[row].float()
        queries = queries.reshape(block_rows, num_kv_heads, group_size, head_dim)
        logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
        attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
        output[row] = attended.flatten(1, 2).to(q.dtype)
        # Base 2: log2 of the sum of exponentials.
        lse[row] = logits.logsumexp(dim=-1).flatten(0, 1).T / math.log(2)
    return output, lse
