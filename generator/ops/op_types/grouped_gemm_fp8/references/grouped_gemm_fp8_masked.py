"""The first rows of each expert in float8 times its weight, scales of blocks, to bfloat16."""

import torch

BLOCK = 128


@torch.no_grad()
def run(
    a: torch.Tensor,
    b: torch.Tensor,
    a_scale: torch.Tensor,
    b_scale: torch.Tensor,
    masked_m: torch.Tensor,
) -> torch.Tensor:
    size = (a.shape[0], a.shape[1], b.shape[1])
    out = torch.zeros(size, dtype=torch.bfloat16, device=a.device)
    for expert, count in enumerate(masked_m.tolist()):
        x_scales = a_scale[expert, :count].repeat_interleave(BLOCK, dim=1)
        x = a[expert, :count].float() * x_scales
        scales = b_scale[expert].repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
        weight = b[expert].float() * scales
        out[expert, :count] = (x @ weight.T).to(torch.bfloat16)
    return out
