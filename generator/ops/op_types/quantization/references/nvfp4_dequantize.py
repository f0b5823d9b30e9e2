"""bfloat16 values of e2m1 codes with a float8_e4m3fn scale for each 16 elements."""

import torch

BLOCK = 16
VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


@torch.no_grad()
def run(
    quantized: torch.Tensor, scales: torch.Tensor, global_scale: float
) -> torch.Tensor:
    # The first of two elements is in the lower half of a byte.
    halves = torch.stack((quantized & 15, (quantized >> 4) & 15), dim=2)
    codes = halves.flatten(1).long()
    table = torch.tensor([*VALUES, *(-v for v in VALUES)], device=quantized.device)
    blocks = table[codes].view(len(codes), -1, BLOCK) * scales.float()[:, :, None]
    return (blocks * global_scale).flatten(1).to(torch.bfloat16)
