"""Gradients of x * rsqrt(mean(x^2) + eps) * weight."""

import torch

EPS = 1e-05


@torch.no_grad()
def run(
    grad_output: torch.Tensor, hidden_states: torch.Tensor, weight: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    grad, x = grad_output.float(), hidden_states.float()
    inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
    normed = x * inverse_rms

    grad_weight = (grad * normed).sum(dim=0)
    scaled = grad * weight.float()
    # The root depends on all columns: what points along the row is taken away.
    along = (scaled * normed).mean(dim=-1, keepdim=True)
    grad_input = inverse_rms * (scaled - normed * along)
    return grad_input.to(hidden_states.dtype), grad_weight.to(weight.dtype)
