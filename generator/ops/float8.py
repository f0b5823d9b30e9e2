"""The values of e4m3, by its definition: no cast of torch or of a kernel is asked."""

from __future__ import annotations

import torch


def e4m3_values(x: torch.Tensor) -> torch.Tensor:
    """Return float64 values rounded to those of e4m3: to 3 bits, or steps of 2^-9.

    What lies beyond 448, the largest value, becomes 448.
    """
    x = x.clamp(-448.0, 448.0)
    exponent = torch.frexp(x).exponent - 1
    step = torch.ldexp(torch.ones_like(x), exponent.clamp_min(-6) - 3)
    # round() takes ties to even
    return torch.round(x / step) * step
