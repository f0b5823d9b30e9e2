"""Keys of latent attention: each head's own part, then the rotary part of all."""

import torch


@torch.no_grad()
def run(k_nope: torch.Tensor, k_rope: torch.Tensor) -> torch.Tensor:
    shared = k_rope.unsqueeze(1).expand(-1, k_nope.shape[1], -1)
    return torch.cat((k_nope, shared), dim=2)
