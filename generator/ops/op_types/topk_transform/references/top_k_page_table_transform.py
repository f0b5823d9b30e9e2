"""Slots of the k highest scores of each row's window, found by its page table."""

import torch

K = 2048
PAGE_SIZE = 64


@torch.no_grad()
def run(
    input: torch.Tensor,
    src_page_table: torch.Tensor,
    lengths: torch.Tensor,
    row_to_batch: torch.Tensor,
) -> torch.Tensor:
    num_rows, max_len = input.shape
    indices = torch.full((num_rows, K), -1, dtype=torch.int32, device=input.device)
    place = torch.arange(max_len, device=input.device)
    scores = input.float().masked_fill(place >= lengths[:, None], float("-inf"))
    best = scores.topk(min(K, max_len), dim=1).indices
    pages = src_page_table[row_to_batch.long()].gather(1, best // PAGE_SIZE)
    slots = pages * PAGE_SIZE + best % PAGE_SIZE
    # of a row that is shorter than k, what stands behind its tokens is padding
    indices[:, : best.shape[1]] = slots.masked_fill(best >= lengths[:, None], -1)
    return indices
