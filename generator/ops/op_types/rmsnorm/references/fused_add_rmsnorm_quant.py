"""RMS normalisation of hidden states plus residual, divided by a scale, in e4m3."""

import torch

EPS = 1e-06


@torch.no_grad()
def run(
    hidden_states: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    # The sum is rounded where it is returned, but not before it is normalised.
    x = hidden_states.float() + residual.float()
    inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
    scaled = x * inverse_rms * weight.float() / scale
    # Beyond 448, the largest value of e4m3, numbers are cut off.
    output = scaled.clamp(-448.0, 448.0).to(torch.float8_e4m3fn)
    return output, x.to(residual.dtype)
