"""Gradients of heads before they turned, dimension i with i + half the head."""

import torch


@torch.no_grad()
def run(
    grad_q: torch.Tensor, grad_k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    def turned_back(grad: torch.Tensor) -> torch.Tensor:
        first, second = grad.float().chunk(2, dim=-1)
        c, s = cos.unsqueeze(1), sin.unsqueeze(1)
        parts = (first * c + second * s, second * c - first * s)
        return torch.cat(parts, dim=-1).to(grad.dtype)

    return turned_back(grad_q), turned_back(grad_k)
