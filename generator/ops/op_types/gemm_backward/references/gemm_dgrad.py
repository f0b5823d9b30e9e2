"""Gradient of the activations of a product: grad_C @ B."""

import torch


@torch.no_grad()
def run(grad_C: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    return (grad_C.float() @ B.float()).to(B.dtype)
