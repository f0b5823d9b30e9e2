"""Tokens of the k highest scores of each row's window, behind the row's offset."""

import torch

K = 2048


@torch.no_grad()
def run(
    input: torch.Tensor, offsets: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    num_rows, max_len = input.shape
    indices = torch.full((num_rows, K), -1, dtype=torch.int32, device=input.device)
    place = torch.arange(max_len, device=input.device)
    scores = input.float().masked_fill(place >= lengths[:, None], float("-inf"))
    best = scores.topk(min(K, max_len), dim=1).indices
    tokens = (best + offsets[:, None]).to(torch.int32)
    # of a row that is shorter than k, what stands behind its tokens is padding
    indices[:, : best.shape[1]] = tokens.masked_fill(best >= lengths[:, None], -1)
    return indices
