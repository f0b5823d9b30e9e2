"""Pairs of token and expert by expert, in blocks that have one expert each."""

import torch

NUM_EXPERTS = 256
BLOCK_SIZE = 64


@torch.no_grad()
def run(topk_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    device = topk_ids.device
    experts = topk_ids.flatten().long()
    pairs = len(experts)
    # Bucket 0 has the pairs of experts that are not here.
    is_here = (experts >= 0) & (experts < NUM_EXPERTS)
    buckets = torch.where(is_here, experts + 1, 0)
    counts = torch.zeros(NUM_EXPERTS + 1, dtype=torch.int64, device=device)
    counts.scatter_add_(0, buckets, torch.ones_like(buckets))
    lengths = (counts + BLOCK_SIZE - 1) // BLOCK_SIZE * BLOCK_SIZE
    ends = lengths.cumsum(0)

    numbers = torch.arange(pairs, device=device)
    # The order within an expert is free.
    order = buckets.argsort()
    sorted_buckets = buckets[order]
    ranks = numbers - (counts.cumsum(0) - counts)[sorted_buckets]
    places = (ends - lengths)[sorted_buckets] + ranks
    num_places = pairs + (NUM_EXPERTS + 1) * (BLOCK_SIZE - 1)
    # A place without a pair holds the number of pairs.
    sorted_token_ids = torch.full(
        (num_places,), pairs, dtype=torch.int32, device=device
    )
    sorted_token_ids[places] = order.int()

    num_blocks = (num_places + BLOCK_SIZE - 1) // BLOCK_SIZE
    starts = torch.arange(num_blocks, device=device) * BLOCK_SIZE
    owners = torch.searchsorted(ends, starts, right=True) - 1
    expert_ids = torch.where(starts < ends[-1], owners, -1).int()
    return sorted_token_ids, expert_ids, ends[-1:].int()
