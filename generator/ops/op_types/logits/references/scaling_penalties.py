"""Logits below 0 times a factor for each token, others divided by it."""

import torch


@torch.no_grad()
def run(logits: torch.Tensor, scaling_penalties: torch.Tensor) -> torch.Tensor:
    smaller, larger = logits * scaling_penalties, logits / scaling_penalties
    return torch.where(logits < 0, smaller, larger)
