"""One draw a row in proportion to its probabilities."""

import torch


@torch.no_grad()
def run(probs: torch.Tensor) -> torch.Tensor:
    return torch.multinomial(probs, 1).squeeze(1)
