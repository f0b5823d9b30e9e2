"""Weights of experts: block scales, mxfp4, and what a callee needs of the chosen ones.

A scale is an integer of 8 … 15 times a power of two, unless a case wants all bits of a
float32. Times the four significant bits of a float8_e4m3 that has eight, so that a
dequantised value is a bfloat16 and a comparison shows the computation, not the
quantisation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch

from .stream import Stream
from .tiled import Tiled, base_length

BLOCK = 128
MX_BLOCK = 32
F8_MAX = 448.0
# the standard deviation of quantised values, in units of their scale
CODE_STD = 100.0
# the magnitudes of float4_e2m1 by their three low bits
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
# the significant bits of a float32, and of a scale unless it has all of these
_ALL_BITS, _FEW_BITS = 24, 4
# of e2m1 codes drawn evenly: the mean square of the magnitudes above
MX_STD = math.sqrt(sum(v * v for v in E2M1) / 8)


def draw_f8(stream: Stream, shape: tuple[int, int, int]) -> Tiled:
    """Return float8_e4m3 weights of standard deviation CODE_STD."""
    base = stream.values((base_length(shape),), CODE_STD)
    return Tiled(base.to(torch.float8_e4m3fn), shape)


def draw_scales(
    stream: Stream, shape: Sequence[int], size: float, all_bits: bool = False
) -> torch.Tensor:
    """Return float32 scales of 4 significant bits, their root mean square `size`.

    With `all_bits` they have 24, so that bfloat16 holds hardly any. The power of two
    that they are multiples of is the nearest: size is met within sqrt(2).
    """
    count = math.prod(shape)
    bits = _ALL_BITS if all_bits else _FEW_BITS
    drawn = stream.integers(2 ** (bits - 1), 2**bits, count)
    # 8 … 15, or all between 8 and 16
    mantissas = torch.tensor(drawn, dtype=torch.float32) * 2.0 ** (_FEW_BITS - bits)
    doubled = torch.tensor(stream.child("doubled").integers(0, 2, count))
    # of 8 … 15, and of 1 and 2: the mean squares are 137.5 and 2.5
    unit = 2.0 ** round(math.log2(size / math.sqrt(137.5 * 2.5)))
    return (mantissas * (1 + doubled) * unit).reshape(tuple(shape))


def draw_mx(stream: Stream, shape: tuple[int, int, int], std: float) -> Tiled:
    """Return float32 weights that are mxfp4 exactly: e2m1 times a power of two.

    32 elements along a row share one of two neighbouring powers.
    """
    count = base_length(shape)
    whole = -(-count // MX_BLOCK)
    halves = stream.values((whole * MX_BLOCK,))
    # bell-shaped values are cut into codes: the sign, and the magnitude's rank
    codes = (halves.abs() * 3.2).to(torch.int64).clamp_max(7)
    magnitudes = torch.tensor(E2M1)[codes] * torch.where(halves < 0, -1.0, 1.0)
    power = 2.0 ** round(math.log2(std / MX_STD))
    doubled = torch.tensor(stream.child("scales").integers(0, 2, whole))
    scales = (power * (1 + doubled)).float().repeat_interleave(MX_BLOCK)
    return Tiled((magnitudes * scales)[:count].contiguous(), shape)


def draw_f8_rows(stream: Stream, rows: int, columns: int) -> torch.Tensor:
    """Return float8_e4m3 rows whose blocks of 128 all reach ±448.

    So a kernel that quantises the dequantised values anew finds the same scales, and
    loses nothing.
    """
    values = stream.values((rows * columns // BLOCK, BLOCK), CODE_STD)
    largest = values.abs().argmax(dim=1, keepdim=True)
    ends = torch.where(values.gather(1, largest) < 0, -F8_MAX, F8_MAX)
    values.scatter_(1, largest, ends)
    return values.reshape(rows, columns).to(torch.float8_e4m3fn)


def by_blocks(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Return float32 values [n, k] times their scales [n / 128, k / 128]."""
    n, k = values.shape
    blocks = values.float().view(n // BLOCK, BLOCK, k // BLOCK, BLOCK)
    return (blocks * scales[:, None, :, None]).view(n, k)


def quantize_mxfp4(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return e2m1 codes and ue8m0 scales of a matrix [n, k].

    Codes are uint8 [n, k / 2], the lower half of a byte first; scales, uint8
    [n, k / 32], are exponents plus 127. By the OCP MX specification: the scale is the
    power of two of the largest magnitude, less two; values round to even. Blocks whose
    largest magnitude is below 2^-124 become 0: float32 has no smaller scales.
    """
    n, k = values.shape
    blocks = values.float().view(n, k // MX_BLOCK, MX_BLOCK)
    largest = blocks.abs().amax(dim=2)
    # frexp gives a mantissa of 0.5 … 1: one less is the exponent of 1 … 2
    exponents = torch.where(largest > 0, torch.frexp(largest).exponent - 3, -127)
    exponents = exponents.clamp(-127, 126).to(torch.int32)
    scaled = blocks.abs() * power_of_two(-exponents)[:, :, None]
    halfway = torch.tensor(
        [(a + b) / 2 for a, b in pairwise(E2M1)],
        device=values.device,
    )
    codes = torch.bucketize(scaled, halfway, out_int32=True)
    # bucketize gives the lower one of a tie: an odd code goes to the even one above
    at_tie = (scaled == halfway[codes.clamp_max(6)]) & (codes < 7)
    codes = codes + (at_tie & (codes % 2 == 1))
    codes = (codes + 8 * (blocks < 0)).to(torch.uint8).view(n, k)
    packed = codes[:, 0::2] | (codes[:, 1::2] << 4)
    return packed, (exponents + 127).to(torch.uint8)


def dequantize_mxfp4(packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Return the float32 matrix [n, k] of e2m1 codes and ue8m0 scales."""
    n, half = packed.shape
    codes = torch.stack([packed & 15, packed >> 4], dim=2).view(n, 2 * half).long()
    table = torch.tensor([*E2M1, *(-v for v in E2M1)], device=packed.device)
    blocks = table[codes].view(n, -1, MX_BLOCK)
    powers = power_of_two(scales.to(torch.int32) - 127)
    return (blocks * powers[:, :, None]).view(n, 2 * half)


def power_of_two(exponents: torch.Tensor) -> torch.Tensor:
    """Return 2 to the power of int32 -126 … 127, made of its bits: exact on any GPU."""
    return ((exponents + 127) << 23).view(torch.float32)


def as_mxfp4(values: torch.Tensor) -> torch.Tensor:
    """Return a matrix quantised to mxfp4 and dequantised again, float32."""
    return dequantize_mxfp4(*quantize_mxfp4(values))


def gate_first(matrix: torch.Tensor) -> torch.Tensor:
    """Return rows [up; gate] as [gate; up], or any tensor of such halves."""
    up, gate = matrix.chunk(2)
    return torch.cat([gate, up])
