"""Attention of T5's encoder, whose logits have a bias for each bucket of distances."""

import math

import torch

MAX_DISTANCE = 128


@torch.no_grad()
def run(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, relative_bias: torch.Tensor
) -> torch.Tensor:
    half = relative_bias.shape[0] // 2
    exact = half // 2
    positions = torch.arange(q.shape[1], device=q.device)
    distances = positions[None, :] - positions[:, None]
    behind = torch.where(distances > 0, half, 0)
    distances = distances.abs()
    # Farther than `exact`, buckets are as wide as their logarithm.
    share = torch.log(distances.clamp_min(1).double() / exact)
    share = share / math.log(MAX_DISTANCE / exact)
    far = exact + (share * (half - exact) + 1e-9).long()
    buckets = behind + torch.where(
        distances < exact, distances, far.clamp_max(half - 1)
    )

    logits = torch.einsum("bqhd,bkhd->bhqk", q.float(), k.float())
    logits = logits + relative_bias.float()[buckets].permute(2, 0, 1)
    weights = torch.softmax(logits, dim=-1)
    return torch.einsum("bhqk,bkhd->bqhd", weights, v.float()).to(q.dtype)
