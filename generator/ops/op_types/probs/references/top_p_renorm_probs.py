"""Probabilities of the fewest tokens that reach p, and of those that tie with the last."""

import torch


@torch.no_grad()
def run(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    falling = probs.sort(dim=1, descending=True).values
    # A token counts while those before it fall short of p: the one that reaches p does.
    before = falling.cumsum(dim=1) - falling
    count = (before < top_p.unsqueeze(1)).sum(dim=1, keepdim=True)
    least = falling.gather(1, count - 1)
    kept = probs.masked_fill(probs < least, 0.0)
    return kept / kept.sum(dim=1, keepdim=True)
