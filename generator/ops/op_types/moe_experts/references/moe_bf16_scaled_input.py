"""Sum of a token's experts, each down(silu(gate(w * x)) * up(w * x)), in bfloat16."""

import torch


@torch.no_grad()
def run(
    hidden_states: torch.Tensor,
    topk_ids: torch.Tensor,
    topk_weights: torch.Tensor,
    w13: torch.Tensor,
    w2: torch.Tensor,
) -> torch.Tensor:
    x = hidden_states.float()
    output = torch.zeros_like(x)
    for expert in sorted(set(topk_ids.flatten().tolist())):
        # An expert of another device is -1 and adds nothing.
        if expert >= 0:
            token, slot = (topk_ids == expert).nonzero(as_tuple=True)
            scaled = x[token] * topk_weights[token, slot, None]
            gate, up = (scaled @ w13[expert].float().T).chunk(2, dim=1)
            inner = torch.nn.functional.silu(gate) * up
            output.index_add_(0, token, inner @ w2[expert].float().T)
    return output.to(torch.bfloat16)
