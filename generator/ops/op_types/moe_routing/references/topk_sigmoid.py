"""The experts of the largest logits, each weighed by its own sigmoid."""

import torch

TOP_K = 1


@torch.no_grad()
def run(router_logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    # topk() sorts: the largest comes first.
    logits, experts = router_logits.float().topk(TOP_K, dim=1)
    return torch.sigmoid(logits), experts.to(torch.int32)
