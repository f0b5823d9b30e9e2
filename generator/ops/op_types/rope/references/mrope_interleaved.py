"""Rotary embedding by three positions, which take turns with the frequencies."""

import torch

HEIGHT = 20
WIDTH = 20


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    rotary_dim = 2 * cos.shape[-1]
    # Dimension i turns with dimension i + rotary_dim // 2, not with its neighbour.
    first, second = x[..., :rotary_dim].float().chunk(2, dim=-1)
    turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    # The dimensions behind rotary_dim pass through.
    return torch.cat((turned.to(x.dtype), x[..., rotary_dim:]), dim=-1)


@torch.no_grad()
def run(
    q: torch.Tensor,
    k: torch.Tensor,
    cos_sin_cache: torch.Tensor,
    positions: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    # [2, num_axes, num_tokens, 1, rotary_dim // 2]: all heads of a token turn alike.
    rows = torch.stack(cos_sin_cache[positions].unsqueeze(2).chunk(2, dim=-1))
    own = rows[:, 0].clone()
    # Every third frequency turns by height, and every third by width, as long as they
    # last; all others turn by the temporal position.
    own[..., 1 : 3 * HEIGHT : 3] = rows[:, 1, ..., 1 : 3 * HEIGHT : 3]
    own[..., 2 : 3 * WIDTH : 3] = rows[:, 2, ..., 2 : 3 * WIDTH : 3]
    cos, sin = own.unbind()
    return rotated(q, cos, sin), rotated(k, cos, sin)
