"""The largest log-probabilities of each row, and their tokens."""

import torch

K = 20


@torch.no_grad()
def run(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    largest = logits.amax(dim=-1, keepdim=True)
    total = (logits - largest).exp().sum(dim=-1, keepdim=True)
    values, tokens = logits.topk(K, dim=-1)
    return (values - largest) - total.log(), tokens
