"""Quick GELU: a number times the sigmoid of 1.702 of it."""

import torch


@torch.no_grad()
def run(x: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    return (wide * torch.sigmoid(1.702 * wide)).to(x.dtype)
