"""e2m1 codes, two a byte, and a power of two for each 32 elements of a row."""

import torch

BLOCK = 32
MAX = 6.0
BIAS = 127


@torch.no_grad()
def run(input: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    blocks = input.float().view(len(input), -1, BLOCK)
    largest = blocks.abs().amax(dim=2)
    # frexp gives a mantissa of 0.5 to 1: exactly 0.5 is the power of two below.
    mantissa, exponent = torch.frexp(largest / MAX)
    exponent = torch.where(mantissa == 0.5, exponent - 1, exponent)
    # A block of zeros has the smallest scale.
    exponent = torch.where(largest == 0, -BIAS, exponent).clamp(-BIAS, BIAS)
    codes = e2m1(torch.ldexp(blocks, -exponent[:, :, None])).view(input.shape)
    # The first of two elements is in the lower half of a byte.
    quantized = codes[:, 0::2] | (codes[:, 1::2] << 4)
    scales = (exponent + BIAS).to(torch.uint8)
    return quantized.view(torch.int8), scales.view(torch.int8)


def e2m1(values: torch.Tensor) -> torch.Tensor:
    magnitude = values.abs().clamp(max=MAX)
    # The step is 0.5 below 2, 1 below 4 and 2 above; round() takes ties to even.
    low = (magnitude * 2).round()
    middle = magnitude.round() + 2
    high = (magnitude / 2).round() + 4
    codes = torch.where(magnitude < 2, low, torch.where(magnitude < 4, middle, high))
    return codes.to(torch.uint8) | (torch.signbit(values).to(torch.uint8) << 3)
