"""A table says which experts a token of the vocabulary takes; logits weigh them."""

import torch


@torch.no_grad()
def run(
    router_logits: torch.Tensor, input_ids: torch.Tensor, tid2eid: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    experts = tid2eid[input_ids]
    scores = torch.nn.functional.softplus(router_logits).sqrt()
    weights = scores.gather(1, experts.long())
    return weights / weights.sum(dim=1, keepdim=True), experts
