"""A device's share of experts with fp4 weights, chosen among all experts."""

import torch

TOP_K = 8


@torch.no_grad()
def run(
    routing_logits: torch.Tensor,
    hidden_states: torch.Tensor,
    gemm1_weights: torch.Tensor,
    gemm2_weights: torch.Tensor,
    local_expert_offset: int,
) -> torch.Tensor:
    logits, experts = routing_logits.float().topk(TOP_K, dim=1)
    weights = torch.softmax(logits, dim=1)
    states = hidden_states.float()

    output = torch.zeros_like(states)
    for expert in range(len(gemm1_weights)):
        number = expert + local_expert_offset
        tokens, slots = (experts == number).nonzero(as_tuple=True)
        if len(tokens) == 0:
            continue
        up, gate = (states[tokens] @ gemm1_weights[expert].T).chunk(2, dim=1)
        inner = torch.nn.functional.silu(gate) * up
        expert_output = inner @ gemm2_weights[expert].T
        output[tokens] += expert_output * weights[tokens, slots].unsqueeze(1)
    return output.to(torch.bfloat16)
