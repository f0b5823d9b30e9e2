"""input @ weight.T of float8 with scales of blocks, rounded to bfloat16."""

import torch

BLOCK = 128


@torch.no_grad()
def run(
    input: torch.Tensor,
    weight: torch.Tensor,
    input_scale: torch.Tensor,
    weight_scale: torch.Tensor,
) -> torch.Tensor:
    # A row of the input has a scale for each 128 elements.
    x = input.float() * input_scale.repeat_interleave(BLOCK, dim=1)
    columns = []
    # Rows of the weight a block at a time: a float32 copy of all may take gigabytes.
    for start in range(0, weight.shape[0], BLOCK):
        rows = weight[start : start + BLOCK].float()
        scales = weight_scale[start // BLOCK].repeat_interleave(BLOCK)
        columns.append((x @ (rows * scales).T).to(torch.bfloat16))
    return torch.cat(columns, dim=1)
