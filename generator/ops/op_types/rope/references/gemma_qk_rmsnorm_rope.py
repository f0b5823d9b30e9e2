"""RMS norm of each head, with weights stored as offsets from one, then rotary embedding."""

import torch

EPS = 1e-06


def normalised(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    x = x.float()
    inverse = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
    return x * inverse * (1.0 + weight.float())


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    rotary_dim = 2 * cos.shape[-1]
    # Dimension i turns with dimension i + rotary_dim // 2, not with its neighbour.
    first, second = x[..., :rotary_dim].chunk(2, dim=-1)
    turned = (first * cos - second * sin, second * cos + first * sin)
    # The dimensions behind rotary_dim do not turn.
    return torch.cat((*turned, x[..., rotary_dim:]), dim=-1)


@torch.no_grad()
def run(
    q: torch.Tensor,
    k: torch.Tensor,
    q_weight: torch.Tensor,
    k_weight: torch.Tensor,
    cos_sin_cache: torch.Tensor,
    positions: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    # All heads of a token turn alike: [num_tokens, 1, rotary_dim // 2].
    cos, sin = cos_sin_cache[positions].unsqueeze(1).chunk(2, dim=-1)
    # The normalised heads stay in float32: they are rounded once.
    q_out = rotated(normalised(q, q_weight), cos, sin)
    k_out = rotated(normalised(k, k_weight), cos, sin)
    return q_out.to(q.dtype), k_out.to(k.dtype)
