"""Sigmoid scores whose bias takes part in choosing only, within the best groups."""

import torch

TOP_K = 8
N_GROUP = 8
TOPK_GROUP = 4


@torch.no_grad()
def run(
    router_logits: torch.Tensor, bias: torch.Tensor, routed_scaling_factor: float
) -> tuple[torch.Tensor, torch.Tensor]:
    num_tokens, num_experts = router_logits.shape
    scores = torch.sigmoid(router_logits)

    # A group is as good as its two best experts together.
    grouped = (scores + bias).view(num_tokens, N_GROUP, num_experts // N_GROUP)
    group_scores = grouped.topk(2, dim=2).values.sum(dim=2)
    groups = group_scores.topk(TOPK_GROUP, dim=1).indices
    allowed = torch.zeros_like(group_scores).scatter(1, groups, 1.0).bool()
    candidates = grouped.masked_fill(~allowed.unsqueeze(2), float("-inf"))
    experts = candidates.flatten(1).topk(TOP_K, dim=1).indices

    weights = scores.gather(1, experts)
    # Where no expert is wanted the weights are 0, and not 0 / 0.
    total = weights.sum(dim=1, keepdim=True) + 1e-20
    return weights / total * routed_scaling_factor, experts.to(torch.int32)
