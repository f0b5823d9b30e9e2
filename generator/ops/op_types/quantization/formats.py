"""Formats that definitions quantise to; codes of e2m1 by comparison with midpoints."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch

from kernel_judge.definition import Definition

# magnitudes of e2m1, indexed by their three low bits
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
SIGN = 8


@dataclass(frozen=True)
class Format:
    """A block's length, the largest code, and of what kind codes and scales are.

    Scales are powers of two (`is_mx`), float8 beside a global scale (`is_global`), or
    else float32. `dequantises` tells the way back.
    """

    block: int
    maximum: float
    is_fp4: bool
    is_mx: bool
    is_global: bool
    dequantises: bool


def format_of(definition: Definition) -> Format:
    """Return the format of a definition, told by its inputs and outputs."""
    interface = definition.interface
    dequantises = "output" in interface.outputs
    specs = interface.input_specs if dequantises else interface.output_specs
    is_fp4 = "K_packed" in definition.axes
    return Format(
        definition.axes["K"] // definition.axes["num_blocks"],
        6.0 if is_fp4 else 448.0,
        is_fp4,
        "scales" in specs and specs["scales"].dtype == "int8",
        "global_scale" in interface.inputs,
        dequantises,
    )


def e2m1_codes(values: torch.Tensor) -> torch.Tensor:
    """Return codes of values, uint8 0 to 15; a tie goes to the even code."""
    magnitudes = values.abs()
    codes = torch.zeros_like(values, dtype=torch.uint8)
    for code, (low, high) in enumerate(pairwise(E2M1)):
        middle = (low + high) / 2
        above = magnitudes >= middle if code % 2 else magnitudes > middle
        codes += above.to(torch.uint8)
    return codes + SIGN * torch.signbit(values).to(torch.uint8)


def packed(codes: torch.Tensor) -> torch.Tensor:
    """Return bytes, int8 [M, K / 2], of codes [M, K], the first in the lower half."""
    return (codes[:, 0::2] + 16 * codes[:, 1::2]).view(torch.int8)


def unpacked(quantized: torch.Tensor) -> torch.Tensor:
    """Return values, float64 [M, K], of bytes, int8 [M, K / 2]."""
    quantized = quantized.view(torch.uint8)
    halves = torch.stack((quantized % 16, quantized // 16), dim=2).flatten(1).long()
    table = torch.tensor(E2M1, dtype=torch.float64, device=quantized.device)
    return table[halves % SIGN] * torch.where(halves < SIGN, 1.0, -1.0).double()
