"""Gradients of hidden states and weight: probabilities less the label's one, times both."""

import torch


@torch.no_grad()
def run(
    grad_losses: torch.Tensor,
    hidden_states: torch.Tensor,
    weight: torch.Tensor,
    labels: torch.Tensor,
    lse: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    x, w = hidden_states.float(), weight.float()
    slopes = (x @ w.T - lse.unsqueeze(1)).exp()
    is_ignored = labels < 0
    chosen = torch.where(is_ignored, 0, labels).unsqueeze(1)
    ones = torch.ones_like(chosen, dtype=torch.float32)
    slopes = slopes.scatter_add(1, chosen, -ones)

    grad_logits = slopes * torch.where(is_ignored, 0.0, grad_losses).unsqueeze(1)
    grad_hidden_states, grad_weight = grad_logits @ w, grad_logits.T @ x
    return grad_hidden_states.to(hidden_states.dtype), grad_weight.to(weight.dtype)
