"""e2m1 codes, two a byte, and a float8_e4m3fn scale for each 16 elements of a row."""

import torch

BLOCK = 16
MAX = 6.0
MAX_SCALE = 448.0


@torch.no_grad()
def run(input: torch.Tensor, global_scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    blocks = input.float().view(len(input), -1, BLOCK) * global_scale
    largest = blocks.abs().amax(dim=2)
    scales = (largest / MAX).clamp(max=MAX_SCALE).to(torch.float8_e4m3fn)
    # Codes are of the scale as it is stored; where it is zero they are zeros.
    stored = scales.float()[:, :, None]
    scaled = torch.where(stored == 0, torch.zeros_like(blocks), blocks / stored)
    codes = e2m1(scaled).view(input.shape)
    # The first of two elements is in the lower half of a byte.
    quantized = codes[:, 0::2] | (codes[:, 1::2] << 4)
    return quantized.view(torch.int8), scales


def e2m1(values: torch.Tensor) -> torch.Tensor:
    magnitude = values.abs().clamp(max=MAX)
    # The step is 0.5 below 2, 1 below 4 and 2 above; round() takes ties to even.
    low = (magnitude * 2).round()
    middle = magnitude.round() + 2
    high = (magnitude / 2).round() + 4
    codes = torch.where(magnitude < 2, low, torch.where(magnitude < 4, middle, high))
    return codes.to(torch.uint8) | (torch.signbit(values).to(torch.uint8) << 3)
