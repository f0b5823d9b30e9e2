"""Experts with one float8 scale each, weighted by a softmax over the chosen ones."""

import torch

TOP_K = 8


@torch.no_grad()
def run(
    routing_logits: torch.Tensor,
    hidden_states: torch.Tensor,
    gemm1_weights: torch.Tensor,
    output1_scales_scalar: torch.Tensor,
    output1_scales_gate_scalar: torch.Tensor,
    gemm2_weights: torch.Tensor,
    output2_scales_scalar: torch.Tensor,
) -> torch.Tensor:
    logits, experts = routing_logits.float().topk(TOP_K, dim=1)
    weights = torch.softmax(logits, dim=1)
    states = hidden_states.float()

    output = torch.zeros_like(states)
    for expert in sorted(set(experts.flatten().tolist())):
        tokens, slots = (experts == expert).nonzero(as_tuple=True)
        up, gate = (states[tokens] @ gemm1_weights[expert].float().T).chunk(2, dim=1)
        up = up * output1_scales_scalar[expert]
        gate = gate * output1_scales_gate_scalar[expert]
        inner = torch.nn.functional.silu(gate) * up
        expert_output = inner @ gemm2_weights[expert].float().T
        expert_output = expert_output * output2_scales_scalar[expert]
        output[tokens] += expert_output * weights[tokens, slots].unsqueeze(1)
    return output.to(torch.bfloat16)
