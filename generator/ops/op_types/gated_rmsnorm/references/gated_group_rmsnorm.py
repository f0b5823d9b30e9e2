"""The gate of each row, then RMS normalisation of its groups."""

import torch

EPS = 1e-05


@torch.no_grad()
def run(
    hidden_states: torch.Tensor, gate: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    gated = hidden_states.float() * torch.nn.functional.silu(gate.float())
    groups = gated.reshape(len(gated), *weight.shape)
    inverse_rms = torch.rsqrt(groups.square().mean(dim=-1, keepdim=True) + EPS)
    normed = (groups * inverse_rms * weight.float()).reshape(gated.shape)
    return normed.to(hidden_states.dtype)
