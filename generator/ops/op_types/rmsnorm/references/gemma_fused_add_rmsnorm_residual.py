"""RMS normalisation of hidden states plus residual, Gemma's offset weight, and the sum."""

import torch

EPS = 1e-06


@torch.no_grad()
def run(
    hidden_states: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    # The sum is rounded where it is returned, but not before it is normalised.
    x = hidden_states.float() + residual.float()
    inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
    # Gemma stores its weights around zero: the scale is one plus the weight.
    output = x * inverse_rms * (1.0 + weight.float())
    return output.to(hidden_states.dtype), x.to(residual.dtype)
