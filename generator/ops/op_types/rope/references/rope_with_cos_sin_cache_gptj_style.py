"""Rotary embedding of the first part of each head, each dimension with its neighbour."""

import torch


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    rotary_dim = 2 * cos.shape[-1]
    # Dimension 2i turns with dimension 2i + 1, not with the one half a head away.
    even, odd = x[..., 0:rotary_dim:2].float(), x[..., 1:rotary_dim:2].float()
    turned = torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1)
    # The dimensions behind rotary_dim pass through.
    return torch.cat((turned.flatten(-2).to(x.dtype), x[..., rotary_dim:]), dim=-1)


@torch.no_grad()
def run(
    q: torch.Tensor,
    k: torch.Tensor,
    cos_sin_cache: torch.Tensor,
    positions: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    # A row of the cache is rotary_dim // 2 cosines, then as many sines. All heads of a
    # token share its row: [num_tokens, 1, rotary_dim // 2].
    cos, sin = cos_sin_cache[positions].unsqueeze(1).chunk(2, dim=-1)
    return rotated(q, cos, sin), rotated(k, cos, sin)
