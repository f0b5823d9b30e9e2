"""C = A @ B.T + bias in bfloat16 with float32 accumulation."""

import torch


@torch.no_grad()
def run(A: torch.Tensor, B: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    a = A.float()
    # Rows of B a block at a time: a float32 copy of all of B may take gigabytes.
    columns = [a @ rows.float().T for rows in torch.split(B, 4096)]
    return (torch.cat(columns, dim=1) + bias.float()).to(torch.bfloat16)
