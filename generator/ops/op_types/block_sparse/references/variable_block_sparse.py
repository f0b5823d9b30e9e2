"""Grouped-query attention over chosen blocks, whose sizes are each KV head's own."""

import math

import torch


@torch.no_grad()
def run(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    block_mask: torch.Tensor,
    block_row_sz: torch.Tensor,
    block_col_sz: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    num_qo_heads, q_len, head_dim = q.shape
    num_kv_heads = k.shape[0]

    # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
    group_size = num_qo_heads // num_kv_heads
    queries = q.float().reshape(num_kv_heads, group_size, q_len, head_dim)
    output = torch.zeros_like(queries)
    lse = torch.zeros_like(queries[..., 0])
    for head in range(num_kv_heads):
        # Each block stands for as many queries, and keys, as its sizes say.
        seen = block_mask[head].repeat_interleave(block_row_sz[head], dim=0)
        seen = seen.repeat_interleave(block_col_sz[head], dim=1)  # [q_len, kv_len]
        logits = queries[head] @ k[head].float().T * sm_scale
        logits.masked_fill_(~seen, -math.inf)
        output[head] = logits.softmax(dim=-1) @ v[head].float()
        # Base 2: log2 of the sum of exponentials.
        lse[head] = logits.logsumexp(dim=-1) / math.log(2)
    return output.flatten(0, 1).to(q.dtype), lse.flatten(0, 1)
