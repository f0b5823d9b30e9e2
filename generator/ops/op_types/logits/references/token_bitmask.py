"""Minus infinity for each token whose bit in packed words is 0."""

import torch


@torch.no_grad()
def run(logits: torch.Tensor, bitmask: torch.Tensor) -> torch.Tensor:
    places = torch.arange(32, device=logits.device)
    bits = (bitmask.unsqueeze(-1) >> places) & 1
    may_come = bits.flatten(1)[:, : logits.shape[1]] == 1
    return torch.where(may_come, logits, -torch.inf)
