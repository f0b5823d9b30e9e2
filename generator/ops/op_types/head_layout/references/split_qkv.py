"""Query, key and value heads of fused rows, each contiguous."""

import torch

NUM_QO_HEADS = 32
NUM_KV_HEADS = 8


@torch.no_grad()
def run(qkv: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    # A row has all query heads, then all key heads, then all value heads.
    first_value = NUM_QO_HEADS + NUM_KV_HEADS
    heads = qkv.view(qkv.shape[0], first_value + NUM_KV_HEADS, -1)
    q = heads[:, :NUM_QO_HEADS]
    k = heads[:, NUM_QO_HEADS:first_value]
    v = heads[:, first_value:]
    return q.contiguous(), k.contiguous(), v.contiguous()
