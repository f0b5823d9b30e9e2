"""GELU by a hyperbolic tangent."""

import math

import torch


@torch.no_grad()
def run(x: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    inner = math.sqrt(2.0 / math.pi) * (wide + 0.044715 * wide * wide * wide)
    return (wide * (0.5 * (1.0 + torch.tanh(inner)))).to(x.dtype)
