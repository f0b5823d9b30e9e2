"""One draw a row by the softmax of its logits."""

import torch


@torch.no_grad()
def run(logits: torch.Tensor) -> torch.Tensor:
    # Of exponential variables divided by the softmax the least is each token's as often
    # as the softmax says, and no sum is needed: the largest logit plus Gumbel noise.
    noise = torch.empty_like(logits).exponential_().log()
    return (logits - noise).argmax(dim=1)
