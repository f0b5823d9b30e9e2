"""What ranks computed for each token, sent back and added up."""

import torch


@torch.no_grad()
def run(expert_rows: torch.Tensor, sources: torch.Tensor) -> torch.Tensor:
    world_size, num_places, hidden_size = expert_rows.shape
    # Token t of rank r has the number r * tokens_per_rank + t; other numbers are none's.
    numbers = sources.flatten().long()
    is_token = (numbers >= 0) & (numbers < num_places)
    rows = expert_rows.flatten(0, 1)[is_token].float()
    total = torch.zeros(
        num_places, hidden_size, dtype=torch.float32, device=expert_rows.device
    )
    total.index_add_(0, numbers[is_token], rows)
    combined = total.to(expert_rows.dtype)
    return combined.reshape(world_size, num_places // world_size, hidden_size)
