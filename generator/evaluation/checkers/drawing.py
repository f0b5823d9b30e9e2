"""The values that other checkers draw for inputs whose values a workload leaves open.

`name` is the input's, `shape` and `dtype` what the definition declares at the workload.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

Shape = tuple[int, ...]
Draw = Callable[[str, Shape, torch.dtype, torch.Generator], torch.Tensor | None]


def flashinfer_bench(
    name: str, shape: Shape, dtype: torch.dtype, random: torch.Generator
) -> torch.Tensor:
    """Draw as flashinfer-bench does.

    Floats are normal, float8 cut at ±2, `probs` a softmax of such rows; integers lie
    from -1024 to 1023, int8 takes all values.
    """
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=random).bool()
    if not dtype.is_floating_point:
        least, most = (-128, 128) if dtype.itemsize == 1 else (-1024, 1024)
        return torch.randint(least, most, shape, generator=random).to(dtype)
    value = torch.randn(shape, generator=random)
    if name == "probs":
        return value.softmax(-1).to(dtype)
    return (value.clamp(-2.0, 2.0) if dtype.itemsize == 1 else value).to(dtype)


def sol_execbench(
    name: str, shape: Shape, dtype: torch.dtype, random: torch.Generator
) -> torch.Tensor | None:
    """Draw as SOL-ExecBench does, by the input's name; None leaves integers as they are.

    A weight is normal over the root of its fan-in, that of a norm 1, a bias 0, a cosine
    or sine that of an angle, a variance positive, `A_log` the logarithm of 1 to 16; all
    else is normal.
    """
    if not dtype.is_floating_point:
        return None
    value = torch.randn(shape, generator=random)
    if "weight" in name:
        # a norm's has one axis
        one = len(shape) < 2 or "norm" in name
        value = torch.ones(shape) if one else value / math.sqrt(shape[-1])
    elif "bias" in name:
        value = torch.zeros(shape)
    elif "cos" in name:
        value = (math.pi * value).cos()
    elif "sin" in name:
        value = (math.pi * value).sin()
    elif "variance" in name:
        value = value.square() + 1e-3
    elif name == "A_log":
        value = (1.0 + 15.0 * torch.rand(shape, generator=random)).log()
    return value.to(dtype)


def normal(
    name: str, shape: Shape, dtype: torch.dtype, random: torch.Generator
) -> torch.Tensor | None:
    """Draw floats from the normal distribution; None leaves integers as they are."""
    if not dtype.is_floating_point:
        return None
    return torch.randn(shape, generator=random).to(dtype)
