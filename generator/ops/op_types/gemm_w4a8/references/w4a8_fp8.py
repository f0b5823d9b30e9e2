"""Float8 activations times 4-bit weights, whose groups of 128 have a scale each."""

import torch

GROUP = 128


@torch.no_grad()
def run(
    a: torch.Tensor, qweight: torch.Tensor, w_scale: torch.Tensor, a_scale: float
) -> torch.Tensor:
    # Shifted up and down again, four bits keep their sign.
    low = (qweight << 4) >> 4
    high = qweight >> 4
    weights = torch.stack((low, high), dim=-1).flatten(1).float()
    scales = w_scale.float().repeat_interleave(GROUP, dim=1)
    product = a.float() @ (weights * scales).T
    return (product * a_scale).to(torch.bfloat16)
