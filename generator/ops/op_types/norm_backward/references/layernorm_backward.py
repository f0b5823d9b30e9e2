"""Gradients of (x - mean(x)) * rsqrt(var(x) + eps) * weight + bias."""

import torch

EPS = 1e-05


@torch.no_grad()
def run(
    grad_output: torch.Tensor, hidden_states: torch.Tensor, weight: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    grad, x = grad_output.float(), hidden_states.float()
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    inverse_deviation = torch.rsqrt(variance + EPS)
    normed = centred * inverse_deviation

    grad_weight = (grad * normed).sum(dim=0)
    grad_bias = grad.sum(dim=0)
    scaled = grad * weight.float()
    # Mean and variance depend on all columns.
    common = scaled.mean(dim=-1, keepdim=True)
    along = (scaled * normed).mean(dim=-1, keepdim=True)
    grad_input = inverse_deviation * (scaled - common - normed * along)
    return (
        grad_input.to(hidden_states.dtype),
        grad_weight.to(weight.dtype),
        grad_bias.to(weight.dtype),
    )
