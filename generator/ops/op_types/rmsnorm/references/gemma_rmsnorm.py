"""RMS normalisation of each row, Gemma's: the weight is an offset from one."""

import torch

EPS = 1e-06


@torch.no_grad()
def run(hidden_states: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    x = hidden_states.float()
    inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
    # Gemma stores its weights around zero: the scale is one plus the weight.
    return (x * inverse_rms * (1.0 + weight.float())).to(hidden_states.dtype)
