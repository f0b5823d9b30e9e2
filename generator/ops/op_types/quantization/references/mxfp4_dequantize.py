"""bfloat16 values of e2m1 codes with a power of two for each 32 elements of a row."""

import torch

BLOCK = 32
BIAS = 127
VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


@torch.no_grad()
def run(quantized: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    # The first of two elements is in the lower half of a byte.
    halves = torch.stack((quantized & 15, (quantized >> 4) & 15), dim=2)
    codes = halves.flatten(1).long()
    table = torch.tensor([*VALUES, *(-v for v in VALUES)], device=quantized.device)
    blocks = table[codes].view(len(codes), -1, BLOCK)
    exponent = scales.view(torch.uint8).to(torch.int32) - BIAS
    return torch.ldexp(blocks, exponent[:, :, None]).flatten(1).to(torch.bfloat16)
