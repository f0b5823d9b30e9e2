"""Rotary embedding of heads by their positions, without a cache."""

import torch

ROPE_THETA = 10000


def frequencies(head_size: int) -> torch.Tensor:
    steps = torch.arange(0, head_size, 2, dtype=torch.float64) / head_size
    return ROPE_THETA**-steps


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    # Dimension i turns with dimension i + head_size // 2, not with its neighbour.
    first, second = x.float().chunk(2, dim=-1)
    turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    return turned.to(x.dtype)


@torch.no_grad()
def run(
    q: torch.Tensor, k: torch.Tensor, pos_ids: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    # float64: at position 100,000 an angle in float32 is off by 4e-3.
    angles = pos_ids.double()[:, None] * frequencies(q.shape[-1]).to(q.device)
    # All heads of a token turn alike: [num_tokens, 1, head_size // 2].
    angles = angles[:, None]
    cos, sin = angles.cos().float(), angles.sin().float()
    return rotated(q, cos, sin), rotated(k, cos, sin)
