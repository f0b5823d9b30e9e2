"""Tokens of all ranks sent to the ranks of their experts, each once for a rank."""

import torch

NUM_EXPERTS = 256


@torch.no_grad()
def run(
    hidden_states: torch.Tensor, topk_ids: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    world_size, tokens_per_rank, hidden_size = hidden_states.shape
    num_places = world_size * tokens_per_rank
    # Token t of rank r has the number r * tokens_per_rank + t.
    rows = hidden_states.reshape(num_places, hidden_size)
    ids = topk_ids.reshape(num_places, -1)
    is_expert = (ids >= 0) & (ids < NUM_EXPERTS)
    ranks = torch.where(is_expert, ids // (NUM_EXPERTS // world_size), -1)

    received = rows.new_zeros(world_size, num_places, hidden_size)
    sources = ids.new_full((world_size, num_places), -1)
    counts = ids.new_zeros(world_size)
    for rank in range(world_size):
        # Several experts of one rank get one row; rows stand in the order of numbers.
        wanted = (ranks == rank).any(dim=1).nonzero().squeeze(1)
        received[rank, : len(wanted)] = rows[wanted]
        sources[rank, : len(wanted)] = wanted.to(sources.dtype)
        counts[rank] = len(wanted)
    return received, sources, counts
