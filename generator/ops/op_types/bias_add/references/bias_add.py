"""The sum of each row and a bias, rounded once."""

import torch


@torch.no_grad()
def run(input: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    total = input.float() + bias.float()
    return total.to(input.dtype)
