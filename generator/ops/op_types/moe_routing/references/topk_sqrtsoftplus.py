"""Scores that are the root of a softplus; their bias takes part in choosing only."""

import torch

TOP_K = 6


@torch.no_grad()
def run(
    router_logits: torch.Tensor, bias: torch.Tensor, routed_scaling_factor: float
) -> tuple[torch.Tensor, torch.Tensor]:
    scores = torch.nn.functional.softplus(router_logits).sqrt()
    experts = (scores + bias).topk(TOP_K, dim=1).indices
    weights = scores.gather(1, experts)
    weights = weights / weights.sum(dim=1, keepdim=True) * routed_scaling_factor
    return weights, experts.to(torch.int32)
