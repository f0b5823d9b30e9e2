"""The sum of hidden states and residual, rounded once."""

import torch


@torch.no_grad()
def run(hidden_states: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    total = hidden_states.float() + residual.float()
    return total.to(residual.dtype)
