"""The largest logit's token, the first of those that tie."""

import torch


@torch.no_grad()
def run(logits: torch.Tensor) -> torch.Tensor:
    largest = logits.amax(dim=-1, keepdim=True)
    tokens = torch.arange(logits.shape[-1], device=logits.device)
    behind_all = logits.shape[-1]
    return torch.where(logits == largest, tokens, behind_all).amin(dim=-1)
