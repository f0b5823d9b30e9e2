"""Probabilities of a row's logits at its own temperature."""

import torch


@torch.no_grad()
def run(logits: torch.Tensor, temperature: torch.Tensor) -> torch.Tensor:
    exponents = logits / temperature.unsqueeze(1)
    powers = (exponents - exponents.amax(dim=1, keepdim=True)).exp()
    # torch.softmax() adds a row up one after the other, sum() in pairs: more precise.
    return powers / powers.sum(dim=1, keepdim=True)
