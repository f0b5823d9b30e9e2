"""Rows in NVFP4: codes of e2m1, two a byte, and a float8 scale for each 16 elements."""

from __future__ import annotations

import torch

from generator.ops.float8 import e4m3_values

_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def nvfp4_rows(rows: torch.Tensor, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return bytes as int8 has them, and scales: float64 [..., n / 2] and [..., n / 16].

    `rows` are [..., n]. Each quotient is that of float32: dividing in float64 and rounding
    to float32 gives the same bits, since 53 bits are more than twice 24 and two.
    """
    factor = torch.tensor(scale, dtype=torch.float32).double().item()
    quotients = (rows.double() / factor).float().double()
    blocks = quotients.view(*rows.shape[:-1], -1, 16)
    units = e4m3_values((blocks.abs().amax(-1) / 6.0).float().double())
    is_zero = (units == 0.0)[..., None]
    divisors = units[..., None].masked_fill(is_zero, 1.0)
    scaled = (blocks / divisors).float().double().masked_fill(is_zero, 0.0)
    codes = _nearest(scaled.abs()) + 8 * torch.signbit(scaled).long()
    codes = codes.flatten(-2)
    pairs = codes[..., 0::2] + 16 * codes[..., 1::2]
    return torch.where(pairs > 127, pairs - 256, pairs).double(), units


def _nearest(magnitudes: torch.Tensor) -> torch.Tensor:
    """Return the code of the nearest value, of two as near the even one: int64."""
    table = torch.tensor(_MAGNITUDES, dtype=torch.float64, device=magnitudes.device)
    below = torch.searchsorted(table, magnitudes.contiguous(), right=True) - 1
    above = (below + 1).clamp(max=7)
    down, up = magnitudes - table[below], table[above] - magnitudes
    is_even = below % 2 == 0
    takes_below = (down < up) | ((down == up) & is_even) | (below == 7)
    return torch.where(takes_below, below, above)
