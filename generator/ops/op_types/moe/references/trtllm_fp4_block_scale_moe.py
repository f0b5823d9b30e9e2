"""Experts with fp4 weights, dequantised, weighted by a softmax over the chosen ones."""

import torch

TOP_K = 8


@torch.no_grad()
def run(
    routing_logits: torch.Tensor,
    hidden_states: torch.Tensor,
    gemm1_weights: torch.Tensor,
    gemm2_weights: torch.Tensor,
) -> torch.Tensor:
    logits, experts = routing_logits.float().topk(TOP_K, dim=1)
    weights = torch.softmax(logits, dim=1)
    states = hidden_states.float()

    output = torch.zeros_like(states)
    for expert in sorted(set(experts.flatten().tolist())):
        tokens, slots = (experts == expert).nonzero(as_tuple=True)
        up, gate = (states[tokens] @ gemm1_weights[expert].T).chunk(2, dim=1)
        inner = torch.nn.functional.silu(gate) * up
        expert_output = inner @ gemm2_weights[expert].T
        output[tokens] += expert_output * weights[tokens, slots].unsqueeze(1)
    return output.to(torch.bfloat16)
