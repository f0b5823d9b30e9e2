"""RMS normalisation of each row, then its gate."""

import torch

EPS = 1e-06


@torch.no_grad()
def run(
    hidden_states: torch.Tensor, gate: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    x = hidden_states.float()
    inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
    normed = x * inverse_rms * weight.float()
    return (normed * torch.nn.functional.silu(gate.float())).to(hidden_states.dtype)
