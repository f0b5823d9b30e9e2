"""Probabilities of the k most probable tokens and of those that tie with the last."""

import torch


@torch.no_grad()
def run(probs: torch.Tensor, top_k: torch.Tensor) -> torch.Tensor:
    # A k beyond the vocabulary leaves out nothing.
    k = top_k.long().clamp(max=probs.shape[1])
    largest = probs.topk(int(k.max()), dim=1).values
    least = largest.gather(1, k.unsqueeze(1) - 1)
    kept = probs.masked_fill(probs < least, 0.0)
    return kept / kept.sum(dim=1, keepdim=True)
