"""x @ W.T of packed int4 weights, W = (code - 8) * scale + zero rounded to bfloat16."""

import torch

GROUP = 128


@torch.no_grad()
def run(
    x: torch.Tensor, codes: torch.Tensor, scales_and_zeros: torch.Tensor
) -> torch.Tensor:
    scales, zeros = scales_and_zeros.float().unbind(dim=2)
    out = torch.zeros(x.shape[0], codes.shape[0], device=x.device)
    # A group at a time: float32 copies of all weights may take gigabytes.
    for group in range(scales.shape[0]):
        columns = slice(group * GROUP // 2, (group + 1) * GROUP // 2)
        packed = codes.view(torch.uint8)[:, columns]
        pairs = torch.stack((packed >> 4, packed & 15), dim=2).flatten(1).float()
        # Kernels have the weight in bfloat16 after one fused multiplication.
        weight = (pairs - 8) * scales[group][:, None] + zeros[group][:, None]
        terms = x[:, group * GROUP : (group + 1) * GROUP].float()
        out += terms @ weight.bfloat16().float().T
    return out.bfloat16()
