"""Gradient of the weight of a product in float32: grad_C.T @ A, over all tokens."""

import torch


@torch.no_grad()
def run(grad_C: torch.Tensor, A: torch.Tensor) -> torch.Tensor:
    return grad_C.float().T @ A.float()
