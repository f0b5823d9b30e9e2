"""The scaled row of each token, zeros for tokens of other shards."""

import math

import torch


@torch.no_grad()
def run(
    input_ids: torch.Tensor, weight: torch.Tensor, vocab_start: int
) -> torch.Tensor:
    rows = input_ids - vocab_start
    is_here = (rows >= 0) & (rows < weight.shape[0])
    found = weight[torch.where(is_here, rows, 0)]
    # Gemma rounds the factor to bfloat16 before the product is rounded.
    factor = torch.tensor(math.sqrt(weight.shape[1]), device=weight.device)
    scaled = found * factor.to(weight.dtype)
    return torch.where(is_here.unsqueeze(1), scaled, 0.0)
