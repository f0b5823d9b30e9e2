"""Attention to the keys of each sequence that are no padding."""

import math

import torch


@torch.no_grad()
def run(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    logits = torch.einsum("bqhd,bkhd->bhqk", q.float(), k.float())
    logits = logits / math.sqrt(q.shape[-1])
    logits = logits.masked_fill(~mask[:, None, None, :], -torch.inf)
    weights = torch.softmax(logits, dim=-1)
    # Without a key a softmax has no value.
    weights = torch.where(mask.any(dim=1)[:, None, None, None], weights, 0.0)
    return torch.einsum("bhqk,bkhd->bqhd", weights, v.float()).to(q.dtype)
