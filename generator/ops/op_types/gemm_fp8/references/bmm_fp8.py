"""A @ B.T for each batch, float8 with one scale a tensor, rounded to bfloat16."""

import torch


@torch.no_grad()
def run(
    A: torch.Tensor, B: torch.Tensor, A_scale: float, B_scale: float
) -> torch.Tensor:
    products = []
    # One batch at a time: float32 copies take four times the memory.
    for a, b in zip(A, B, strict=True):
        product = a.float() @ b.float().T
        products.append((product * (A_scale * B_scale)).to(torch.bfloat16))
    return torch.stack(products)
