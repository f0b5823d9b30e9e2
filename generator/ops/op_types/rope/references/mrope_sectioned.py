"""Rotary embedding by three positions: each turns a section of the frequencies."""

import torch

TEMPORAL = 16
HEIGHT = 24
WIDTH = 24


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
    # The axis a turns the section a.
    sections = torch.split(rows, [TEMPORAL, HEIGHT, WIDTH], dim=-1)
    own = [section[:, axis] for axis, section in enumerate(sections)]
    cos, sin = torch.cat(own, dim=-1).unbind()
    return rotated(q, cos, sin), rotated(k, cos, sin)
