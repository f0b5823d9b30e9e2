"""Experts with fp4 weights, dequantised, one a token as in Llama 4."""

import torch


@torch.no_grad()
def run(
    routing_logits: torch.Tensor,
    routing_bias: torch.Tensor,
    hidden_states: torch.Tensor,
    gemm1_weights: torch.Tensor,
    gemm2_weights: torch.Tensor,
) -> torch.Tensor:
    # The bias takes part in choosing only.
    scores = torch.sigmoid(routing_logits.float())
    experts = (scores + routing_bias.float()).argmax(dim=1)
    # The score scales what goes into the expert, ahead of silu.
    states = hidden_states.float() * scores.gather(1, experts.unsqueeze(1))

    output = torch.zeros_like(states)
    for expert in sorted(set(experts.flatten().tolist())):
        tokens = (experts == expert).nonzero().squeeze(1)
        up, gate = (states[tokens] @ gemm1_weights[expert].T).chunk(2, dim=1)
        inner = torch.nn.functional.silu(gate) * up
        output[tokens] = inner @ gemm2_weights[expert].T
    return output.to(torch.bfloat16)
