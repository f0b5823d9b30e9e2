"""The experts of the largest logits, weighed by their share of the softmax."""

import torch

TOP_K = 8


@torch.no_grad()
def run(router_logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scores = torch.softmax(router_logits.float(), dim=1)
    # topk() sorts: the largest comes first.
    weights, experts = scores.topk(TOP_K, dim=1)
    weights = weights / weights.sum(dim=1, keepdim=True)
    return weights, experts.to(torch.int32)
