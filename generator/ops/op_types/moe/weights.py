"""Weights of experts: drawing, float8 block scales, mxfp4.

A scale is an integer of 8 … 15 times a power of two, unless a case needs all 24 bits of a
float32. Multiplied by the four significant bits of a float8_e4m3 it has eight: bfloat16
holds the dequantised value, and comparisons show the computation, not the quantisation.

Scales below midpoints of bfloat16 are (1 + 27/256 - 2^-16) times a power of two. Rounded to
bfloat16 each is 0.35 % smaller. Multiplied by a float8_e4m3 first and rounded then, nearly as
many products are rounded down as up: they are larger by 0.02 to 0.03 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch

from kernel_judge.inputs.lazy_weights import Tiled, base_length
from kernel_judge.inputs.seeded_inputs import Stream

BLOCK = 128
MX_BLOCK = 32
F8_MAX = 448.0
# the standard deviation of quantised values, in units of their scale
CODE_STD = 100.0
# magnitudes of float4_e2m1, indexed by their three low bits
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
# significant bits of a scale: all of a float32, or four
_ALL_BITS, _FEW_BITS = 24, 4
_BELOW_MIDPOINT = 1.0 + 27 * 2.0**-8 - 2.0**-16
# steps of the probability that a scale is twice another
_SHARES = 1000
# root mean square of uniform e2m1 codes
MX_STD = math.sqrt(sum(v * v for v in E2M1) / 8)


def draw_f8(stream: Stream, shape: tuple[int, int, int]) -> Tiled:
    """Return float8_e4m3fn weights of `shape` and standard deviation CODE_STD."""
    base = stream.values((base_length(shape),), CODE_STD)
    return Tiled(base.to(torch.float8_e4m3fn), shape)


def draw_scales(
    stream: Stream, shape: Sequence[int], size: float, all_bits: bool = False
) -> torch.Tensor:
    """Return float32 scales of `shape`, of 4 significant bits and an RMS near `size`.

    With `all_bits` they have 24, so that bfloat16 holds hardly any. They are multiples of
    a power of two, so the RMS is within a factor of sqrt(2) of `size`.
    """
    count = math.prod(shape)
    bits = _ALL_BITS if all_bits else _FEW_BITS
    drawn = stream.integers(2 ** (bits - 1), 2**bits, count)
    # 8 … 15, or any value from 8 to 16
    mantissas = torch.tensor(drawn, dtype=torch.float32) * 2.0 ** (_FEW_BITS - bits)
    doubled = torch.tensor(stream.child("doubled").integers(0, 2, count))
    # the mean square of 8 … 15 is 137.5, that of 1 and 2 is 2.5
    unit = 2.0 ** round(math.log2(size / math.sqrt(137.5 * 2.5)))
    return (mantissas * (1 + doubled) * unit).reshape(tuple(shape))


def draw_scales_below(
    stream: Stream, shape: Sequence[int], size: float
) -> torch.Tensor:
    """Return float32 scales of `shape`, below midpoints of bfloat16, of RMS `size`."""
    power = 2.0 ** math.floor(math.log2(size / _BELOW_MIDPOINT))
    unit = power * _BELOW_MIDPOINT
    # of 1 and 2 the squares are 1 and 4
    share = ((size / unit) ** 2 - 1.0) / 3.0
    drawn = stream.integers(0, _SHARES, math.prod(shape))
    doubled = torch.tensor(drawn) < share * _SHARES
    return (unit * (1.0 + doubled.float())).reshape(tuple(shape))


def draw_mx(stream: Stream, shape: tuple[int, int, int], std: float) -> Tiled:
    """Return float32 weights of `shape` that mxfp4 holds exactly.

    Each is an e2m1 value times a power of two, which 32 elements of a row share.
    """
    count = base_length(shape)
    whole = -(-count // MX_BLOCK)
    halves = stream.values((whole * MX_BLOCK,))
    # quantise bell-shaped values to a sign and a magnitude's code, 7 at most
    codes = (halves.abs() * 3.2).int()
    magnitudes = torch.tensor(E2M1).index_select(0, codes).copysign_(halves)
    power = 2.0 ** round(math.log2(std / MX_STD))
    doubled = stream.child("scales").integer_tensor(0, 2, whole)
    scaled = magnitudes.view(-1, MX_BLOCK) * (power * (1 + doubled)).float()[:, None]
    return Tiled(scaled.flatten()[:count], shape)


def draw_f8_rows(stream: Stream, rows: int, columns: int) -> torch.Tensor:
    """Return float8_e4m3fn [rows, columns] whose blocks of 128 all contain ±448.

    A kernel that dequantises and quantises them finds the same scales and is lossless.
    """
    values = stream.values((rows * columns // BLOCK, BLOCK), CODE_STD)
    largest = values.abs().argmax(dim=1, keepdim=True)
    ends = torch.where(values.gather(1, largest) < 0, -F8_MAX, F8_MAX)
    values.scatter_(1, largest, ends)
    return values.reshape(rows, columns).to(torch.float8_e4m3fn)


def by_blocks(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Return values [n, k] times scales [n / 128, k / 128]: float32 [n, k]."""
    n, k = values.shape
    blocks = values.float().view(n // BLOCK, BLOCK, k // BLOCK, BLOCK)
    return (blocks * scales[:, None, :, None]).view(n, k)


def quantize_mxfp4(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantise a matrix [n, k] to mxfp4.

    Returns e2m1 codes uint8 [n, k / 2], the low half of a byte first, and ue8m0 scales
    uint8 [n, k / 32], the exponents plus 127. As in the OCP MX specification, a scale's
    exponent is that of the largest magnitude, less 2, and values round to even. Blocks
    below 2^-124 become 0, as float32 has no smaller scales.
    """
    n, k = values.shape
    blocks = values.float().view(n, k // MX_BLOCK, MX_BLOCK)
    largest = blocks.abs().amax(dim=2)
    # frexp's mantissa is 0.5 … 1, so its exponent is one above that of 1 … 2
    exponents = torch.where(largest > 0, torch.frexp(largest).exponent - 3, -127)
    exponents = exponents.clamp(-127, 126).to(torch.int32)
    scaled = blocks.abs() * power_of_two(-exponents)[:, :, None]
    halfway = torch.tensor(
        [(a + b) / 2 for a, b in pairwise(E2M1)],
        device=values.device,
    )
    codes = torch.bucketize(scaled, halfway, out_int32=True)
    # bucketize rounds ties down: move an odd code up to the even one
    at_tie = (scaled == halfway[codes.clamp_max(6)]) & (codes < 7)
    codes = codes + (at_tie & (codes % 2 == 1))
    codes = (codes + 8 * (blocks < 0)).to(torch.uint8).view(n, k)
    packed = codes[:, 0::2] | (codes[:, 1::2] << 4)
    return packed, (exponents + 127).to(torch.uint8)


def dequantize_mxfp4(packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Return float32 [n, k] for bytes of codes [n, k / 2] and of scales [n, k / 32].

    Both are uint8 or int8: the bits count.
    """
    packed, scales = packed.view(torch.uint8), scales.view(torch.uint8)
    n, half = packed.shape
    codes = torch.stack([packed & 15, packed >> 4], dim=2).view(n, 2 * half).long()
    table = torch.tensor([*E2M1, *(-v for v in E2M1)], device=packed.device)
    blocks = table[codes].view(n, -1, MX_BLOCK)
    powers = power_of_two(scales.to(torch.int32) - 127)
    return (blocks * powers[:, :, None]).view(n, 2 * half)


def power_of_two(exponents: torch.Tensor) -> torch.Tensor:
    """Return 2^exponents, float32, for int32 -126 … 127; exact on every device."""
    return ((exponents + 127) << 23).view(torch.float32)


def as_mxfp4(values: torch.Tensor) -> torch.Tensor:
    """Quantise a matrix [n, k] to mxfp4 and back: float32 [n, k]."""
    return dequantize_mxfp4(*quantize_mxfp4(values))


def gate_first(matrix: torch.Tensor) -> torch.Tensor:
    """Swap the halves of dimension 0: [up; gate] becomes [gate; up]."""
    up, gate = matrix.chunk(2)
    return torch.cat([gate, up])
