"""The scaled row of each token."""

import math

import torch


@torch.no_grad()
def run(input_ids: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    # Gemma rounds the factor to bfloat16 before the product is rounded.
    factor = torch.tensor(math.sqrt(weight.shape[1]), device=weight.device)
    return weight[input_ids] * factor.to(weight.dtype)
