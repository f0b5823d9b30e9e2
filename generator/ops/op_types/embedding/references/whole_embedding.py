"""The row of each token."""

import torch


@torch.no_grad()
def run(input_ids: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return weight[input_ids]
