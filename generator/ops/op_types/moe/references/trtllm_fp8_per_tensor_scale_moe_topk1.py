"""Experts with one float8 scale each, one expert a token as in Llama 4."""

import torch


@torch.no_grad()
def run(
    routing_logits: torch.Tensor,
    hidden_states: torch.Tensor,
    gemm1_weights: torch.Tensor,
    output1_scales_scalar: torch.Tensor,
    output1_scales_gate_scalar: torch.Tensor,
    gemm2_weights: torch.Tensor,
    output2_scales_scalar: torch.Tensor,
    routing_bias: torch.Tensor,
) -> torch.Tensor:
    # The largest logit chooses; the bias, which the interface carries, does not count.
    logits, experts = routing_logits.float().max(dim=1)
    # The score scales what goes into the expert, ahead of silu.
    states = hidden_states.float() * torch.sigmoid(logits).unsqueeze(1)

    output = torch.zeros_like(states)
    for expert in sorted(set(experts.flatten().tolist())):
        tokens = (experts == expert).nonzero().squeeze(1)
        up, gate = (states[tokens] @ gemm1_weights[expert].float().T).chunk(2, dim=1)
        up = up * output1_scales_scalar[expert]
        gate = gate * output1_scales_gate_scalar[expert]
        inner = torch.nn.functional.silu(gate) * up
        expert_output = inner @ gemm2_weights[expert].float().T
        output[tokens] = expert_output * output2_scales_scalar[expert]
    return output.to(torch.bfloat16)
