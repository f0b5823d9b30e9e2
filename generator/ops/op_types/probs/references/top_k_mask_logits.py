"""The k largest logits and those that tie with the last; minus infinity elsewhere."""

import torch


@torch.no_grad()
def run(logits: torch.Tensor, top_k: torch.Tensor) -> torch.Tensor:
    # A k beyond the vocabulary leaves out nothing.
    k = top_k.long().clamp(max=logits.shape[1])
    largest = logits.topk(int(k.max()), dim=1).values
    least = largest.gather(1, k.unsqueeze(1) - 1)
    return logits.masked_fill(logits < least, float("-inf"))
