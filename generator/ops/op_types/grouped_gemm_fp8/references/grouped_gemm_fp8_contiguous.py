"""Rows of float8 times the weight that each names, scales of blocks, to bfloat16."""

import torch

BLOCK = 128


@torch.no_grad()
def run(
    a: torch.Tensor,
    b: torch.Tensor,
    a_scale: torch.Tensor,
    b_scale: torch.Tensor,
    m_indices: torch.Tensor,
) -> torch.Tensor:
    out = torch.zeros(a.shape[0], b.shape[1], dtype=torch.bfloat16, device=a.device)
    x = a.float() * a_scale.repeat_interleave(BLOCK, dim=1)
    # Rows of -1 are padding, which no expert has.
    for expert in range(b.shape[0]):
        rows = m_indices == expert
        if not rows.any():
            continue
        scales = b_scale[expert].repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
        weight = b[expert].float() * scales
        out[rows] = (x[rows] @ weight.T).to(torch.bfloat16)
    return out
