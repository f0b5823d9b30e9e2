"""float8_e4m3fn codes, and a power of two for each 32 elements of a row."""

import torch

BLOCK = 32
MAX = 448.0
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
    codes = torch.ldexp(blocks, -exponent[:, :, None]).clamp(-MAX, MAX)
    quantized = codes.to(torch.float8_e4m3fn).view(input.shape)
    return quantized, (exponent + BIAS).to(torch.uint8).view(torch.int8)
